//! "Did you mean …?": the known name nearest to an unknown one.
//!
//! Names are compared in lower case, without `-`, `_` and a version such as `-v5`. A name is near if its edit distance
//! (insertions, deletions, replacements, swaps of neighbours) is at most a third of the letters, or if one contains the
//! other.

/// The nearest of the `known` names, if any is near; the first in a tie.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let far = word.chars().count();
    let distance_to = |name: &str| {
        let name = plain(name);
        let part = word.len() > 3 && name.len() > 3 && (name.contains(&word) || word.contains(&name));
        match distance(&word, &name) {
            steps if steps <= far.max(3) / 3 => steps,
            _ if part => far,
            _ => usize::MAX,
        }
    };
    let ranked = known.into_iter().map(|name| (distance_to(name), name));
    ranked
        .filter(|(steps, _)| *steps < usize::MAX)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

/// " (did you mean X?)", or nothing.
pub fn question<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

/// The names in backticks of "…, expected one of `a`, `b`".
pub fn names_in(message: &str) -> Vec<&str> {
    message
        .split_once("expected")
        .map_or("", |(_, names)| names)
        .split('`')
        .skip(1)
        .step_by(2)
        .collect()
}

fn plain(name: &str) -> String {
    let small = name.to_lowercase();
    let stem = match small.rsplit_once("-v") {
        Some((stem, version)) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => &small,
    };
    stem.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect()
}

/// Edit distance of two words (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[a.len()][b.len()]
}

/// What is wrong with a setting, in terms of TOML instead of Rust.
pub fn plain_words(error: &toml::de::Error) -> String {
    let (wrong, expected) = match error.message().split_once(", expected ") {
        Some((wrong, expected)) => (wrong, Some(expected)),
        None => (error.message(), None),
    };
    let wrong = wrong
        .replace("invalid type: map", "invalid type: table")
        .replace('\n', " ");
    match expected {
        None if wrong.contains("untagged enum Behaviour") => {
            "expected state-action, state, task or a list of signals and numbers of observations, as in [\"velocity\", 3]".into()
        }
        None => wrong,
        Some("u64" | "usize") => wrong + ", expected a whole number, 0 or more",
        Some("f64") => wrong + ", expected a number",
        Some("a sequence") => wrong + ", expected a list, as in [1, 2]",
        Some(kind) if kind.starts_with("struct ") => wrong + ", expected a table of settings",
        Some(other) => wrong + ", expected " + &other.replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found() {
        let tasks = [
            "maze",
            "hopper",
            "walker2d",
            "halfcheetah",
            "deceptive-cheetah",
            "sawyer",
        ];
        for (word, meant) in [
            ("hoper", Some("hopper")),
            ("Hopper-v5", Some("hopper")),
            ("HalfCheetah-v4", Some("halfcheetah")),
            ("half_cheetah", Some("halfcheetah")),
            ("cheetah", Some("halfcheetah")),
            ("mzae", Some("maze")),
            ("walker", Some("walker2d")),
            ("moon", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, tasks), meant, "{word}");
        }
        assert_eq!(question("hoper", tasks), " (did you mean hopper?)");
        assert_eq!(question("moon", tasks), "");
    }

    #[test]
    fn expected_names_are_read_from_a_message() {
        assert_eq!(
            names_in("unknown field `klip`, expected one of `clip`, `gamma`"),
            ["clip", "gamma"]
        );
        assert_eq!(names_in("unknown field `klip`"), Vec::<&str>::new());
    }
}

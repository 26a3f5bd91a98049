//! How much memory this machine, or the control group of this process, has left.

use std::path::PathBuf;

/// A human-readable size.
pub fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

/// Bytes that this process may still allocate: on the machine, or in its control group if that allows less; none if the
/// system does not report it.
pub fn available() -> Option<f64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = meminfo.as_deref().and_then(|text| kib(text, "MemAvailable:"));
    let group = groups().into_iter().filter_map(|folder| left(&folder));
    group.chain(machine).min_by(f64::total_cmp)
}

fn kib(text: &str, key: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace()
        .next()?
        .parse::<f64>()
        .ok()
        .map(|kib| kib * 1024.0)
}

/// The folders of this process's control group and its parents, for both versions of control groups.
fn groups() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let root = match controllers {
            "" => PathBuf::from("/sys/fs/cgroup"),
            names if names.split(',').any(|name| name == "memory") => PathBuf::from("/sys/fs/cgroup/memory"),
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        folders.extend(
            own.ancestors()
                .take_while(|folder| folder.starts_with(&root))
                .map(PathBuf::from),
        );
    }
    folders
}

/// What a control group has left: its limit minus its usage, without the file cache.
fn left(folder: &std::path::Path) -> Option<f64> {
    let number = |name: &str| {
        std::fs::read_to_string(folder.join(name))
            .ok()?
            .trim()
            .parse::<f64>()
            .ok()
    };
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let cached = cached.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(0.0);
    Some((limit - used + cached).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_has() {
        if cfg!(target_os = "linux") {
            assert!(available().unwrap() > 1e6);
        }
        assert_eq!(
            kib("MemTotal: 5 kB\nMemAvailable:   1000 kB\n", "MemAvailable:"),
            Some(1_024_000.0)
        );
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(left(folder.path()), None);
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 3\ninactive_file 100\n");
        assert_eq!(left(folder.path()), Some(400.0));
        write("memory.max", "max\n");
        assert_eq!(left(folder.path()), None);
    }
}

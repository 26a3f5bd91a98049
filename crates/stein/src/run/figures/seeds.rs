//! A metric of several cases: every seed as a point, the interval of each case as a line through them.

use crate::plot::{Curve, CurveStyle, Figure, Lines};

/// Name of a case, the values of its seeds, and its interval if there is one.
pub type Case<'a> = (&'a str, &'a [f64], Option<[f64; 2]>);

/// The figure of one metric; rows from top to bottom, as in the legend.
pub fn figure(title: &str, measure: &str, cases: &[Case]) -> Figure {
    let curve = |number: usize, name: Option<&str>, points: Vec<[f64; 2]>| Curve {
        name: name.map(String::from),
        style: CurveStyle::Policy(number),
        points,
    };
    let mut curves = Vec::new();
    for (number, (name, seeds, interval)) in cases.iter().enumerate() {
        let row = (cases.len() - number) as f64;
        let line = interval.map(|[low, high]| vec![[low, row], [high, row]]);
        // Without an interval the first seed represents the case.
        let first = line.unwrap_or_else(|| seeds.iter().take(1).map(|&value| [value, row]).collect());
        curves.push(curve(number, Some(name), first));
        // A curve of one point is a dot.
        curves.extend(seeds.iter().map(|&value| curve(number, None, vec![[value, row]])));
    }
    Figure::Lines(Lines {
        title: title.into(),
        x: format!("{measure}: seeds as dots, 95 % intervals as lines"),
        y: "case, from top to bottom as in the legend".into(),
        curves,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_a_dot_on_the_line_of_its_case() {
        let cases: [Case; 2] = [("a", &[1.0, 2.0], Some([0.5, 2.5])), ("b", &[7.0], None)];
        let Figure::Lines(lines) = figure("title", "ways", &cases) else {
            panic!("not lines");
        };
        let points: Vec<_> = lines.curves.iter().map(|curve| curve.points.clone()).collect();
        assert_eq!(points[0], [[0.5, 2.0], [2.5, 2.0]]);
        assert_eq!(points[1..3], [vec![[1.0, 2.0]], vec![[2.0, 2.0]]]);
        assert_eq!(points[3..], [vec![[7.0, 1.0]], vec![[7.0, 1.0]]]);
        let named: Vec<_> = lines.curves.iter().filter_map(|curve| curve.name.as_deref()).collect();
        assert_eq!(named, ["a", "b"]);
    }
}

//! Curves and their legend.

use super::*;

#[test]
fn curves_show_policies_mean_best_and_legend() {
    let (colours, svg) = drawn(&Figure::Lines(learning(10, 100)));
    assert!(colours.contains(&[0, 0, 0]), "the mean is missing");
    assert!(colours.len() > 100, "only {} colours", colours.len());
    for text in [
        "Return while training",
        "environment steps",
        "return",
        "mean",
        "best",
        "policy 0",
        "policy 9",
        "100k",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "'{text}' is missing");
    }
}

#[test]
fn unnamed_curves_have_no_row_in_the_legend() {
    let points = vec![[0.0, 0.0], [1.0, 1.0]];
    let named = curve(Some("policies"), CurveStyle::Policy(0), points.clone());
    let (colours, svg) = drawn(&Figure::Lines(lines(vec![
        named,
        curve(None, CurveStyle::Policy(1), points),
    ])));
    assert_eq!(svg.matches("policies").count(), 1);
    assert!(!svg.contains("policy"));
    assert!(colours.len() > 10);
}

#[test]
fn points_that_are_not_finite_break_a_curve() {
    let mean = |points: &[[f64; 2]]| {
        let svg = vector::svg(&Figure::Lines(lines(vec![curve(
            None,
            CurveStyle::Mean,
            points.to_vec(),
        )])))
        .unwrap();
        let shapes = |tag: &str| {
            svg.lines()
                .filter(|line| line.starts_with(tag) && line.contains("#000000"))
                .count()
        };
        (shapes("<polyline"), shapes("<circle"))
    };
    assert_eq!(mean(&[[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]), (1, 0));
    assert_eq!(
        mean(&[[0.0, 1.0], [1.0, 2.0], [2.0, f64::NAN], [3.0, 2.0], [4.0, 3.0]]),
        (2, 0)
    );
    assert_eq!(mean(&[[0.0, f64::INFINITY], [1.0, 2.0], [f64::NAN, 0.0]]).0, 0);
    assert!(
        mean(&[[0.0, f64::INFINITY], [1.0, 2.0], [f64::NAN, 0.0]]).1 > 0,
        "a lone point is a dot"
    );
}

#[test]
fn a_band_is_filled() {
    let outline = vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
    let svg = vector::svg(&Figure::Lines(lines(vec![curve(None, CurveStyle::Band(0), outline)]))).unwrap();
    let filled = |line: &&str| line.starts_with("<polygon") && line.contains("#0072B2") && line.contains("0.15");
    assert_eq!(svg.lines().filter(filled).count(), 1, "{svg}");
}

#[test]
fn a_lone_point_is_a_dot_in_the_legend_too() {
    let dots = |name: Option<&str>| {
        let figure = Figure::Lines(lines(vec![curve(name, CurveStyle::Mean, vec![[1.0, 2.0]])]));
        let svg = vector::svg(&figure).unwrap();
        let black = |tag: &str| {
            svg.lines()
                .filter(|line| line.starts_with(tag) && line.contains("#000000"))
                .count()
        };
        (black("<circle"), black("<polyline"))
    };
    let (unnamed, named) = (dots(None), dots(Some("target")));
    assert!(unnamed.0 > 0);
    assert_eq!(named, (2 * unnamed.0, unnamed.1));
}

#[test]
fn odd_curves_are_drawn() {
    let nan = f64::NAN;
    let odd: [&[[f64; 2]]; 8] = [
        &[],
        &[[0.0, 0.0]],
        &[[5.0, -3.0], [5.0, -3.0]],
        &[[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]],
        &[[nan, nan], [nan, 1.0], [1.0, nan]],
        &[[0.0, f64::MAX], [1.0, f64::MIN], [2.0, f64::INFINITY]],
        &[[0.0, 1e-12], [1.0, 2e-12]],
        &[[0.0, 9e299], [1.0, -9e299], [2.0, 1.0]],
    ];
    for points in odd {
        for style in [
            CurveStyle::Policy(0),
            CurveStyle::Policy(12),
            CurveStyle::Policy(usize::MAX),
            CurveStyle::Band(3),
            CurveStyle::Best,
            CurveStyle::Level,
        ] {
            drawn(&Figure::Lines(lines(vec![curve(Some("odd"), style, points.to_vec())])));
        }
    }
    drawn(&Figure::Lines(lines(vec![])));
}

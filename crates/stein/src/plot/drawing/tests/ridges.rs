//! Histograms, one row per policy.

use super::*;

#[test]
fn ridges_stand_on_the_number_of_their_policy() {
    let (colours, svg) = drawn(&Figure::Ridges(ridges(vec![vec![0.0, 0.5, 0.25], vec![1.0, 0.0, 0.0]])));
    for policy in [0, 1] {
        assert!(
            colours.contains(&rgb(style::colour(policy))),
            "no outline of policy {policy}"
        );
    }
    // The policies 0 and 1, and the 0 of the other axis.
    let count = |number: &str| svg.matches(&format!("\n{number}\n")).count();
    assert_eq!([count("0"), count("1"), count("2")], [2, 1, 0]);
    // All corners of an outline as x and y, y upwards from the bottom of the page.
    let corners = |colour: &str| -> Vec<[f64; 2]> {
        let lines = svg
            .lines()
            .filter(|line| line.starts_with("<polyline") && line.contains(colour));
        let points = lines.flat_map(|line| {
            line.split("points=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .split(' ')
        });
        let pairs = points.filter_map(|point| point.split_once(','));
        pairs
            .map(|(x, y)| [x.parse().unwrap(), -y.parse::<f64>().unwrap()])
            .collect()
    };
    let range = |points: &[[f64; 2]], axis: usize| {
        let values = points.iter().map(|point| point[axis]);
        [values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max)]
    };
    let (first, second) = (corners("#0072B2"), corners("#E69F00"));
    let ([low, high], [base, top]) = (range(&first, 1), range(&second, 1));
    // The largest bars, of 0.5 and 1, are both 0.9 rows high, on lines one row apart; a bar of 0.25 is half as high.
    assert!(((top - base) / (high - low) - 1.0).abs() < 0.02, "{first:?} {second:?}");
    let half = |point: &[f64; 2]| ((point[1] - low) / (high - low) - 0.5).abs() < 0.02;
    assert!(first.iter().filter(|point| half(point)).count() >= 2, "{first:?}");
    assert!(
        ((base - low) / (top - base) - 1.0 / 0.9).abs() < 0.02,
        "{first:?} {second:?}"
    );
    // The first one is empty where the second one has bars.
    assert!(range(&first, 0)[0] >= range(&second, 0)[1] - 1.0);
}

#[test]
fn odd_ridges_are_drawn() {
    let nan = f64::NAN;
    drawn(&Figure::Ridges(ridges(vec![])));
    drawn(&Figure::Ridges(ridges(vec![vec![]])));
    drawn(&Figure::Ridges(ridges(vec![
        vec![0.0; 4],
        vec![nan, f64::INFINITY, 1e-300],
    ])));
    drawn(&Figure::Ridges(Ridges {
        low: nan,
        ..ridges(vec![vec![1.0; 3]])
    }));
    drawn(&Figure::Ridges(Ridges {
        low: 1e17,
        width: 1e-3,
        ..ridges(vec![vec![1.0; 3]])
    }));
    let many = Figure::Ridges(ridges(vec![vec![1.0; 60]; 40]));
    assert!(many.size()[1] > style::LINES_SIZE[1]);
    let (_, svg) = drawn(&many);
    assert!((0..40).all(|policy| svg.contains(&format!("\n{policy}\n"))));
}

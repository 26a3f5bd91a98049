//! Matrices in colours.

use super::*;

#[test]
fn a_heatmap_shows_values_numbers_titles_and_scale() {
    let values = [1.0, 0.3, f64::NAN, 0.3, 1.0, 0.0, 0.6, 0.0, 1.0];
    let (colours, svg) = drawn(&Figure::Heatmap(heatmap(&[
        ("iteration 1", &values),
        ("iteration 9", &[1.0; 9]),
    ])));
    for value in [0.0, 0.3, 0.6, 1.0] {
        assert!(colours.contains(&rgb(style::shade(value))), "no cell of {value}");
    }
    assert!(colours.contains(&rgb(style::MISSING)), "the NaN is not grey");
    for text in [
        "Kernel of a run",
        "policy i",
        "policy j",
        "kernel",
        "iteration 1",
        "iteration 9",
        "0.25",
        "2",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "'{text}' is missing");
    }
    assert!(!svg.contains("\n3\n"), "three policies are 0, 1 and 2");
    assert_eq!(svg.matches("\npolicy i\n").count(), 1);
    assert_eq!(svg.matches("\npolicy j\n").count(), 2);
}

#[test]
fn rows_of_a_heatmap_go_down_and_columns_right() {
    // The only dark cell is in row 0, column 2.
    let mut values = vec![0.0; 9];
    values[2] = 1.0;
    let svg = vector::svg(&Figure::Heatmap(heatmap(&[("", &values)]))).unwrap();
    let number = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let side =
        |line: &&str| (number(line, "width") - number(line, "height")).abs() < 5.0 && number(line, "width") > 100.0;
    let cells: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("<rect"))
        .filter(side)
        .collect();
    let dark: Vec<&&str> = cells.iter().filter(|line| line.contains("#08306B")).collect();
    assert_eq!((cells.len(), dark.len()), (9, 1));
    let most = |name: &str| cells.iter().map(|line| number(line, name)).fold(f64::MIN, f64::max);
    let least = |name: &str| cells.iter().map(|line| number(line, name)).fold(f64::MAX, f64::min);
    assert_eq!((number(dark[0], "x"), number(dark[0], "y")), (most("x"), least("y")));
}

#[test]
fn odd_heatmaps_are_drawn_and_wrong_ones_refused() {
    drawn(&Figure::Heatmap(heatmap(&[])));
    drawn(&Figure::Heatmap(heatmap(&[("", &[])])));
    drawn(&Figure::Heatmap(heatmap(&[("one", &[0.5])])));
    drawn(&Figure::Heatmap(heatmap(&[(
        &"long ".repeat(50),
        &[f64::INFINITY, -3.0, f64::NAN, 7.0],
    )])));
    let (_, svg) = drawn(&Figure::Heatmap(heatmap(&[("many", &vec![0.5; 60 * 60])])));
    assert!(svg.contains("\n50\n") && !svg.contains("\n51\n"), "every tenth number");
    let error = vector::svg(&Figure::Heatmap(heatmap(&[("torn", &[0.5; 3])]))).unwrap_err();
    assert!(
        error.to_string().contains("torn") && error.to_string().contains("3 values"),
        "{error}"
    );
}

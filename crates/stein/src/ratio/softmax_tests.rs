use super::*;
use crate::nn::test::random_vector;
use crate::rng::{Purpose, stream};

fn streams(n: usize, seed: u64) -> Vec<Stream> {
    (0..n).map(|i| stream(seed, Purpose::RatioOrder, i, 0)).collect()
}

fn network(n: usize, width: usize, hidden: &[usize], capacity: usize) -> Softmax {
    Softmax::new(n, width, hidden, 0.0, capacity, |p| stream(1, Purpose::RatioInit, p, 3))
}

#[test]
fn draws_are_proportional_to_weights() {
    let weights = [1.0f32, 0.0, 3.0, 0.5];
    let (draws, mut places) = (Draws::new(&weights), vec![0; 45]);
    let mut random = stream(3, Purpose::RatioOrder, 0, 0);
    let mut counts = [0; 4];
    for _ in 0..100 {
        draws.draw(&mut random, &mut places);
        places.iter().for_each(|&at| counts[at as usize] += 1);
    }
    // Strata of a tenth each: 10, 0, 30 and 5 of every 45, exactly.
    assert_eq!(counts, [1000, 0, 3000, 500]);
}

#[test]
fn slopes_match_central_differences() {
    let (n, batch) = (3, 5);
    let shape = Shape::new(2, &[], n);
    let logits = random_vector(8, n * batch, 2.0);
    let run = |logits: &[f64]| {
        let mut scratch = Scratch::<f32>::new(&shape, batch);
        scratch.load_input(&vec![0.0; 2 * batch]);
        let row = scratch.row;
        for j in 0..n {
            for b in 0..batch {
                scratch.h[1][j * row + b] = logits[j * batch + b] as f32;
            }
        }
        let loss = cross_entropy(&mut scratch, n, 1, 0.25);
        let derivatives: Vec<f64> = (0..n * batch)
            .map(|at| f64::from(scratch.output_delta(at / batch)[at % batch]))
            .collect();
        (loss, derivatives)
    };
    let (_, derivatives) = run(&logits);
    for at in 0..n * batch {
        let moved = |h: f64| {
            let mut moved = logits.clone();
            moved[at] += h;
            run(&moved).0
        };
        let numeric = (moved(1e-2) - moved(-1e-2)) / 2e-2;
        assert!(
            (numeric - derivatives[at]).abs() < 1e-4,
            "{at}: {numeric} {}",
            derivatives[at]
        );
    }
}

/// Three distributions over four outcomes with one-hot features; the weights say how often, the totals differ.
#[test]
fn logits_are_log_ratios_whatever_the_totals_of_the_weights() {
    let chances = [[0.1f32, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.4, 0.1]];
    let one_hot: Vec<f32> = (0..16).map(|at| f32::from(u8::from(at / 4 == at % 4))).collect();
    let features = vec![one_hot.clone(); 3];
    let scaled: Vec<Vec<f32>> = [1.0, 9.0, 0.05]
        .iter()
        .zip(&chances)
        .map(|(scale, chances)| chances.iter().map(|chance| scale * chance).collect())
        .collect();
    let weights: Vec<&[f32]> = scaled.iter().map(|weights| &weights[..]).collect();
    let mut net = network(3, 4, &[], 100);
    let lessons = Lessons {
        features: &features,
        weights: &weights,
        updates: 1500,
        each: 200,
        rate: (0.02, 0.0),
        l2: 0.0,
        clip: 1.0,
    };
    net.train(&lessons, &mut streams(3, 1));
    let logits = net.logits(&one_hot);
    for (a, b) in [(0, 1), (1, 2), (2, 0)] {
        for x in 0..4 {
            let exact = (chances[a][x] / chances[b][x]).ln();
            let learned = logits[a][x] - logits[b][x];
            assert!((learned - exact).abs() < 0.05, "{a}{b} at {x}: {learned} {exact}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let features: Vec<Vec<f32>> = (0..4)
        .map(|i| random_vector(20 + i, 300, 1.0).iter().map(|&x| x as f32).collect())
        .collect();
    let weights = vec![vec![1.0f32; 100]; 4];
    let weights: Vec<&[f32]> = weights.iter().map(|weights| &weights[..]).collect();
    let run = |threads: usize| {
        let pool = crate::parallel::Threads::new(threads).unwrap();
        pool.run(|| {
            let mut net = network(4, 3, &[8, 8], 16);
            let lessons = Lessons {
                features: &features,
                weights: &weights,
                updates: 20,
                each: 40,
                rate: (1e-3, 1e-3),
                l2: 1e-3,
                clip: 1.0,
            };
            net.train(&lessons, &mut streams(4, 2));
            net.logits(&features[0])
        })
    };
    assert_eq!(run(1), run(3));
}

//! Tests of the linear-Gaussian system: against quadrature, simulation, and the flow equation.

use super::*;
use crate::truth::{GaussianPair, pair};

/// E_ρ[x] and E_ρ[x·xᵀ] of x = (s, a), from the Gaussians of all steps.
fn exact_moments(occupancy: &GaussianOccupancy) -> (Vec<f64>, Vec<f64>) {
    let (n, m) = (occupancy.gain.columns, occupancy.gain.rows);
    let size = n + m;
    // x = T·s + (0, k0) + (0, noise)
    let stack: Vec<f64> = Matrix::scaled_identity(n, 1.0)
        .entries
        .into_iter()
        .chain(occupancy.gain.entries.iter().copied())
        .collect();
    let stack = Matrix::new(size, n, stack);
    let noise = occupancy.noise.lower.times(&occupancy.noise.lower.transposed());
    let mut first = vec![0.0; size];
    let mut second = vec![0.0; size * size];
    for (state, weight) in occupancy.states.iter().zip(&occupancy.log_weights) {
        let weight = weight.exp();
        let mut mean = stack.apply(&state.mean);
        mean[n..].iter_mut().zip(&occupancy.offset).for_each(|(x, k)| *x += k);
        let covariance = stack.sandwich(&state.lower.times(&state.lower.transposed()));
        for i in 0..size {
            first[i] += weight * mean[i];
            for j in 0..size {
                let extra = if i >= n && j >= n { noise.row(i - n)[j - n] } else { 0.0 };
                second[i * size + j] += weight * (covariance.row(i)[j] + mean[i] * mean[j] + extra);
            }
        }
    }
    (first, second)
}

fn sample_moments<'a>(samples: impl Iterator<Item = (&'a [f64], &'a [f64])>, size: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut first, mut second, mut count) = (vec![0.0; size], vec![0.0; size * size], 0.0);
    for (state, action) in samples {
        let x: Vec<f64> = state.iter().chain(action).copied().collect();
        count += 1.0;
        for i in 0..size {
            first[i] += x[i];
            (0..size).for_each(|j| second[i * size + j] += x[i] * x[j]);
        }
    }
    first.iter_mut().chain(&mut second).for_each(|sum| *sum /= count);
    (first, second)
}

fn distance((a, aa): &(Vec<f64>, Vec<f64>), (b, bb): &(Vec<f64>, Vec<f64>)) -> f64 {
    let pairs = a.iter().chain(aa).zip(b.iter().chain(bb));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn the_density_integrates_to_one_and_has_the_exact_moments() {
    let GaussianPair { occupancies, .. } = pair(1).unwrap();
    for occupancy in &occupancies {
        let (mut integral, mut first, step) = (0.0, [0.0; 3], 0.1);
        let grid = |half: i32| (-half..=half).map(move |i| f64::from(i) * step);
        for x in grid(40) {
            for y in grid(40) {
                // Densities of action and state factorise, so each state has its own integral over actions.
                let state = [x, y];
                if occupancy.log_state_density(&state) < -20.0 {
                    continue;
                }
                for action in grid(60) {
                    let density = occupancy.log_density(&state, &[action]).exp() * step * step * step;
                    integral += density;
                    for (first, x) in first.iter_mut().zip([x, y, action]) {
                        *first += density * x;
                    }
                }
            }
        }
        assert!((integral - 1.0).abs() < 1e-4, "{integral}");
        for (first, expected) in first.iter().zip(exact_moments(occupancy).0) {
            assert!((first - expected).abs() < 1e-3, "{first} {expected}");
        }
    }
}

#[test]
fn the_moments_satisfy_the_flow_equation() {
    let GaussianPair {
        system,
        policies,
        occupancies,
    } = pair(2).unwrap();
    for (policy, occupancy) in policies.iter().zip(&occupancies) {
        let (first, second) = exact_moments(occupancy);
        // One step of all of ρ: s' = [F G]·x + noise.
        let step: Vec<f64> = (0..2)
            .flat_map(|row| [system.f.row(row), system.g.row(row)].concat())
            .collect();
        let step = Matrix::new(2, 3, step);
        let after = step.apply(&first);
        let squares = step.sandwich(&Matrix::new(3, 3, second.clone())).plus(&system.q);
        for i in 0..2 {
            let flow = 0.05 * system.m0[i] + 0.95 * after[i];
            assert!((first[i] - flow).abs() < 1e-9, "{} {flow}", first[i]);
            for j in 0..2 {
                let start = system.p0.row(i)[j] + system.m0[i] * system.m0[j];
                let flow = 0.05 * start + 0.95 * squares.row(i)[j];
                assert!((second[i * 3 + j] - flow).abs() < 1e-9, "{} {flow}", second[i * 3 + j]);
            }
        }
        assert!((first[2] - policy.k.apply(&first[..2])[0] - policy.k0[0]).abs() < 1e-12);
    }
}

#[test]
fn drawn_data_have_the_moments_of_the_occupancy_and_of_no_other() {
    let GaussianPair {
        system,
        policies,
        occupancies,
    } = pair(3).unwrap();
    let samples = 200_000;
    let data = system.draw(&policies[0], samples, 1).unwrap();
    let rows = data.states.chunks(2).zip(data.actions.chunks(1));
    let drawn = sample_moments(rows, 3);
    let right = distance(&drawn, &exact_moments(&occupancies[0]));
    assert!(right < 0.02, "{right}");
    let moments = |gamma| {
        let system = LinearGaussian {
            gamma,
            ..system.clone()
        };
        exact_moments(&system.occupancy(&policies[0]).unwrap())
    };
    for wrong in [moments(0.9), moments(0.99), exact_moments(&occupancies[1])] {
        let wrong = distance(&drawn, &wrong);
        assert!(wrong > 0.04, "{wrong} against {right}");
    }

    let restarts = data.initial.len() as f64 / 2.0;
    assert!((restarts / samples as f64 - 0.05).abs() < 0.002, "{restarts}");
    let mean: Vec<f64> = (0..2)
        .map(|i| data.initial.chunks(2).map(|s| s[i]).sum::<f64>() / restarts)
        .collect();
    for (mean, m0) in mean.iter().zip(&system.m0) {
        assert!((mean - m0).abs() < 5.0 * 0.2 / restarts.sqrt());
    }
    let residuals = data.states.chunks(2).zip(&data.actions).zip(data.next.chunks(2));
    let residuals = residuals.map(|((state, action), next)| {
        let expected = plus(&system.f.apply(state), &system.g.apply(&[*action]));
        next.iter()
            .zip(expected)
            .map(|(next, expected)| (next - expected).powi(2))
            .sum::<f64>()
    });
    let variance = residuals.sum::<f64>() / (2 * samples) as f64;
    assert!((variance / 0.09 - 1.0).abs() < 0.02, "{variance}");
}

#[test]
fn independent_samples_have_the_exact_moments_and_the_ratio_has_mean_one() {
    let GaussianPair {
        occupancies: [a, b], ..
    } = pair(4).unwrap();
    let mut random = stream(9, Use::Integral, 9);
    let samples: Vec<_> = (0..50_000).map(|_| b.sample(&mut random)).collect();
    let rows = samples.iter().map(|(state, action)| (&state[..], &action[..]));
    let miss = distance(&sample_moments(rows, 3), &exact_moments(&b));
    assert!(miss < 0.03, "{miss}");
    let ratios = samples
        .iter()
        .map(|(state, action)| a.log_zeta(&b, state, action).exp());
    let mean = ratios.sum::<f64>() / samples.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
}

/// A system of one step (γ = 0) whose occupancy is one Gaussian.
fn one_step(offset: f64) -> (LinearGaussian, LinearGaussianPolicy) {
    let system = LinearGaussian {
        f: Matrix::scaled_identity(1, 0.5),
        g: Matrix::scaled_identity(1, 1.0),
        q: Matrix::scaled_identity(1, 1.0),
        m0: vec![2.0],
        p0: Matrix::scaled_identity(1, 4.0),
        gamma: 0.0,
    };
    let policy = LinearGaussianPolicy {
        k: Matrix::scaled_identity(1, 0.0),
        k0: vec![offset],
        r: Matrix::scaled_identity(1, 1.0),
    };
    (system, policy)
}

#[test]
fn by_hand_with_gamma_zero() {
    let (system, policy) = one_step(1.0);
    let a = system.occupancy(&policy).unwrap();
    let b = system.occupancy(&one_step(-1.0).1).unwrap();
    // N(s; 2, 4)·N(a; 1, 1)
    let expected = -std::f64::consts::TAU.ln() - 2f64.ln() - 0.5 * 0.25 - 0.5 * 4.0;
    assert!((a.log_density(&[3.0], &[3.0]) - expected).abs() < 1e-14);
    assert!((a.log_zeta(&b, &[3.0], &[3.0]) - 6.0).abs() < 1e-12);
    let data = system.draw(&policy, 100, 1).unwrap();
    assert_eq!(data.initial, data.states);
    assert_eq!(system.draw(&policy, 100, 1).unwrap(), data);
    assert_ne!(system.draw(&policy, 100, 2).unwrap(), data);
}

#[test]
fn the_divergence_agrees_with_quadrature() {
    let b = one_step(-1.0);
    let (a, b) = (
        one_step(1.0).0.occupancy(&one_step(1.0).1).unwrap(),
        b.0.occupancy(&b.1).unwrap(),
    );
    // The states cancel, leaving D_JS of N(1, 1) and N(-1, 1).
    let density = |x: f64, mean: f64| (-0.5 * (x - mean).powi(2)).exp() / std::f64::consts::TAU.sqrt();
    let integrand = |x: f64| {
        let (p, q) = (density(x, 1.0), density(x, -1.0));
        0.5 * p * (2.0 * p / (p + q)).ln() + 0.5 * q * (2.0 * q / (p + q)).ln()
    };
    let exact: f64 = (-1000..=1000).map(|i| integrand(f64::from(i) * 0.01) * 0.01).sum();
    let estimate = a.jensen_shannon(&b, 100_000, 1);
    assert!(estimate.error < 0.002 && estimate.error > 1e-5, "{estimate:?}");
    assert!(
        (estimate.mean - exact).abs() < 4.0 * estimate.error,
        "{estimate:?} {exact}"
    );
    assert!(a.jensen_shannon(&a, 100, 1).mean.abs() < 1e-12);
}

#[test]
fn long_and_short_sums_of_gaussians_agree() {
    let GaussianPair { system, policies, .. } = pair(5).unwrap();
    let occupancy = system.occupancy(&policies[0]).unwrap();
    let weights: f64 = occupancy.log_weights.iter().map(|weight| weight.exp()).sum();
    assert!((weights - 1.0).abs() < 1e-12);
    // The same sum, step by step far beyond both limits.
    let (mut mean, mut covariance) = (system.m0.clone(), system.p0.clone());
    let transition = system.closed_loop(&policies[0]);
    let noise = system.g.sandwich(&policies[0].r).plus(&system.q);
    let (point, mut density) = ([0.3, -0.2], 0.0);
    for t in 0..1000 {
        density += 0.05
            * 0.95f64.powi(t)
            * Gaussian::new(mean.clone(), &covariance, "")
                .unwrap()
                .log_density(&point)
                .exp();
        mean = plus(&transition.apply(&mean), &system.g.apply(&policies[0].k0));
        covariance = transition.sandwich(&covariance).plus(&noise);
    }
    assert!((occupancy.log_state_density(&point) - density.ln()).abs() < 1e-8);
    assert!(occupancy.log_density(&[100.0, 100.0], &[100.0]).is_finite());
}

#[test]
fn a_covariance_that_is_not_positive_definite_is_refused_by_name() {
    type Change = fn(&mut LinearGaussian, &mut LinearGaussianPolicy);
    let cases: [(&str, Change); 3] = [
        ("P0", |system, _| system.p0.entries[0] = 0.0),
        ("Q", |system, _| system.q.entries[0] = -1.0),
        ("R", |_, policy| policy.r.entries[0] = f64::NAN),
    ];
    for (name, change) in cases {
        let (mut system, mut policy) = one_step(1.0);
        change(&mut system, &mut policy);
        let sentence = system.draw(&policy, 1, 1).unwrap_err().to_string();
        assert!(sentence.starts_with(&format!("the covariance {name} ")), "{sentence}");
    }
}

//! Exact occupancies with one-hot features, gradients, threads and checkpoints.

use super::dualdice::{DualDice, saddle};
use super::gendice::{GenDice, Residual};
use super::valuedice::{Dual, ValueDice};
use super::*;
use crate::nn::test::{central_difference, random_vector};
use crate::ratio::{Data, RatioConfig};
use crate::truth::dense::Matrix;
use crate::truth::{Ring, TabularMdp, TabularPolicy};
use crate::verify::tabular::TabularPolicies;

/// A small ring with three policies and, as their data, every transition with its exact probability.
struct Exact {
    mdp: TabularMdp,
    policies: Vec<TabularPolicy>,
    data: Vec<Transitions>,
}

fn exact(termination: bool, deterministic: bool) -> Exact {
    let ring = Ring {
        states: 6,
        actions: 2,
        gamma: 0.9,
        termination,
        deterministic,
    };
    let [first, second] = ring.problem(3).unwrap().policies;
    let mdp = ring.problem(3).unwrap().mdp;
    let third = first.iter().zip(&second).map(|(a, b)| 0.5 * (a + b)).collect();
    let policies = vec![first, second, third];
    let data = policies.iter().map(|policy| every_transition(&mdp, policy)).collect();
    Exact { mdp, policies, data }
}

fn every_transition(mdp: &TabularMdp, policy: &TabularPolicy) -> Transitions {
    let occupancy = mdp.occupancy(policy);
    let mut data = Transitions {
        initial: (0..mdp.states).map(|s| s as f32).collect(),
        initial_weights: mdp.initial.iter().map(|&p| p as f32).collect(),
        mass: occupancy.mass as f32,
        ..Transitions::default()
    };
    for pair in 0..mdp.states * mdp.actions {
        let ending = mdp.termination[pair];
        let mut push = |next: usize, chance: f64, ended: bool| {
            if chance > 0.0 && occupancy.rho[pair] > 0.0 {
                data.states.push((pair / mdp.actions) as f32);
                data.actions.push((pair % mdp.actions) as f32);
                data.next_states.push(next as f32);
                data.terminated.push(ended);
                data.weights.push((occupancy.rho[pair] * chance) as f32);
            }
        };
        for (next, &chance) in mdp.next(pair).iter().enumerate() {
            push(next, (1.0 - ending) * chance, false);
        }
        push(0, ending, true);
    }
    data
}

fn settings(exact: &Exact, hidden: Vec<usize>, ridge: f64) -> EstimatorConfig {
    let ratio = RatioConfig {
        hidden,
        ridge,
        data: Data::Pooled,
        minibatch: 64,
        ..RatioConfig::default()
    };
    let width = exact.mdp.states * exact.mdp.actions;
    EstimatorConfig::new(
        crate::ratio::EstimatorChoice::named("dualdice").unwrap(),
        3,
        width,
        exact.mdp.gamma,
        &ratio,
        1,
    )
    .unwrap()
}

/// Lets an estimator learn, and returns the largest error of log ζ_ab on the samples of both.
fn worst<S: Solver>(exact: &Exact, solver: S) -> f64 {
    let mut pooled = Pooled::new(settings(exact, Vec::new(), 1e-8), solver);
    let policies = TabularPolicies {
        mdp: &exact.mdp,
        policies: &exact.policies,
    };
    let mut worst = 0.0f64;
    for round in 0..3 {
        pooled.update(&Round {
            policies: &policies,
            data: &exact.data,
            seed: 1,
            round,
            updates: 1,
            rate: (1.0, 1.0),
        });
    }
    let batches: Vec<&Transitions> = exact.data.iter().collect();
    for (p, (on_b, _)) in pooled.log_zetas(&policies, &batches, 1, 0).iter().enumerate() {
        let (a, b) = crate::ratio::pair_of(p, 3);
        let zeta = exact.mdp.zeta(&exact.policies[a], &exact.policies[b]);
        for (t, &log_zeta) in on_b.iter().enumerate() {
            let pair = batches[b].states[t] as usize * exact.mdp.actions + batches[b].actions[t] as usize;
            worst = worst.max((f64::from(log_zeta) - zeta[pair].ln()).abs());
        }
    }
    worst
}

#[test]
fn exact_data_give_exact_ratios_with_and_without_termination() {
    for (termination, deterministic) in [(false, true), (false, false), (true, false)] {
        let exact = exact(termination, deterministic);
        let error = worst(&exact, GenDice);
        assert!(error < 0.02, "GenDICE, termination {termination}: {error}");
        if deterministic {
            let error = worst(&exact, ValueDice);
            assert!(error < 0.02, "ValueDICE: {error}");
        }
    }
}

/// ζ itself, for the floor under DualDICE's ζ bends its logarithm where it is small.
#[test]
fn the_saddle_point_is_the_exact_ratio() {
    for termination in [false, true] {
        let exact = exact(termination, false);
        let settings = settings(&exact, Vec::new(), 1e-8);
        let policies = TabularPolicies {
            mdp: &exact.mdp,
            policies: &exact.policies,
        };
        let pooled = Pooled::new(settings.clone(), DualDice);
        let pool = Pool::new(&policies, &exact.data, usize::MAX, 1, 0);
        let size = entries(&[], settings.width);
        let standard = pool.standard(&pooled.net, size);
        let map = Map {
            net: &pooled.net,
            standard: &standard,
        };
        let now = map.rows(&pool.features, settings.width);
        let b = gram(&now, &pool.weights, &now, size);
        let occupancies: Vec<_> = exact
            .policies
            .iter()
            .map(|policy| exact.mdp.occupancy(policy))
            .collect();
        for i in 0..3 {
            let problem = Problem::new(&settings, &policies, i, &exact.data[i], &pool, &map, (&now, &b), 1, 0);
            let (u, _) = saddle(&problem);
            let mean: f64 = problem
                .now()
                .zip(problem.weights)
                .map(|(row, w)| w * read(row, &u))
                .sum();
            assert!((mean - 1.0).abs() < 1e-3, "E_d[ζ] = {mean}");
            for (t, row) in problem.now().enumerate() {
                let one = pool.features[t * settings.width..][..settings.width]
                    .iter()
                    .position(|&x| x == 1.0);
                let pair = one.unwrap();
                let d: f64 = occupancies.iter().map(|o| o.rho[pair] / 3.0).sum();
                let (zeta, truth) = (read(row, &u), occupancies[i].rho[pair] / d);
                assert!((zeta - truth).abs() < 0.01, "{i} at {pair}: {zeta} {truth}");
            }
        }
    }
}

/// A problem of random numbers: 40 samples, 5 entries and the constant.
fn random_problem<'a>(now: &'a [f32], weights: &'a [f64], b: &'a Matrix) -> Problem<'a> {
    let next: Vec<f32> = rows(82, 40);
    let first: Vec<f64> = rows(83, 1)[..6].iter().map(|&x| f64::from(x)).collect();
    Problem {
        gamma: 0.9,
        entries: 6,
        now,
        weights,
        b,
        next,
        first,
        ridge: 1e-2,
        policies: 3.0,
    }
}

fn rows(seed: u64, count: usize) -> Vec<f32> {
    let numbers = random_vector(seed, count * 5, 1.0);
    let mut rows = vec![0.0; count * padded(6)];
    for (row, numbers) in rows.chunks_exact_mut(padded(6)).zip(numbers.chunks_exact(5)) {
        row.iter_mut().zip(numbers).for_each(|(x, &y)| *x = y as f32);
        row[5] = 1.0;
    }
    rows
}

#[test]
fn gradients_match_central_differences_and_descent_ends_where_they_vanish() {
    let (now, weights) = (rows(81, 40), vec![1.0 / 40.0; 40]);
    let b = gram(&now, &weights, &now, 6);
    let problem = random_problem(&now, &weights, &b);
    let at = random_vector(84, 6, 0.5);
    let residual = Residual::new(&problem);
    let gradient = residual.gradient(&at, &residual.at(&at));
    central_difference(&at, &gradient, 1e-6, |u| residual.at(u).objective);
    let dual = Dual::new(&problem);
    let gradient = dual.gradient(&at, &dual.at(&at));
    central_difference(&at, &gradient, 1e-6, |v| dual.at(v).objective);
    let mut v = at.clone();
    let end = dual.descend(&mut v);
    assert!(dual.gradient(&v, &end).iter().all(|derivative| derivative.abs() < 1e-2));
    let mut u = at;
    let before = residual.at(&u).objective;
    assert!(residual.descend(&mut u) < 0.5 * before);
}

#[test]
fn grams_are_sums_of_weighted_products() {
    let (left, right, weights) = (rows(91, 600), rows(92, 600), random_vector(93, 600, 1.0));
    let fast = gram(&left, &weights, &right, 6);
    for (r, c) in [(0, 0), (2, 5), (5, 1), (5, 5)] {
        let at = |rows: &[f32], t: usize, k: usize| f64::from(rows[t * padded(6) + k]);
        let slow: f64 = (0..600).map(|t| weights[t] * at(&left, t, r) * at(&right, t, c)).sum();
        assert!((fast.row(r)[c] - slow).abs() < 1e-3, "{r} {c}");
    }
}

#[test]
fn threads_change_nothing_and_a_checkpoint_holds_everything() {
    let exact = exact(true, false);
    let policies = TabularPolicies {
        mdp: &exact.mdp,
        policies: &exact.policies,
    };
    let make = || Pooled::new(settings(&exact, vec![8], 1e-3), GenDice);
    let update = |pooled: &mut Pooled<GenDice>, round: usize| {
        pooled.update(&Round {
            policies: &policies,
            data: &exact.data,
            seed: 4,
            round,
            updates: 3,
            rate: (1.0, 1.0),
        });
    };
    let run = |threads: usize| {
        let threads = crate::parallel::Threads::new(threads).unwrap();
        threads.run(|| {
            let mut pooled = make();
            update(&mut pooled, 0);
            update(&mut pooled, 1);
            pooled.log_zeta(0, 1, &policies, &exact.data[1], 4, 1)
        })
    };
    assert_eq!(run(1), run(3));
    let mut first = make();
    update(&mut first, 0);
    let mut checkpoint = Checkpoint::new(1, "");
    first.save(&mut checkpoint);
    let mut again = make();
    again.restore(&mut checkpoint).unwrap();
    update(&mut again, 1);
    assert_eq!(again.log_zeta(0, 1, &policies, &exact.data[1], 4, 1), run(1));
}

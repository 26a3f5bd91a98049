//! Tests of verification on rings: the estimators pass, wrong answers do not, and state is saved whole.

use super::*;
use crate::checkpoint::Checkpoint;
use crate::ratio::{Estimator, Round, build};

fn ring(termination: bool, deterministic: bool) -> Ring {
    Ring {
        states: 20,
        actions: 3,
        gamma: 0.9,
        termination,
        deterministic,
    }
}

#[test]
fn transitions_keep_the_counts() {
    let problem = ring(true, false).problem(1).unwrap();
    let [data, _] = draw(&problem, 5000, 1);
    let rows = transitions(&data);
    assert_eq!(rows.len(), data.transitions.len());
    let mean = rows.weights.iter().sum::<f32>() / rows.len() as f32;
    assert!((mean - 1.0).abs() < 1e-4);
    let first = &data.transitions[0];
    let share = first.count as f32 / 5000.0;
    assert!((rows.weights[0] / rows.len() as f32 - share).abs() < 1e-6);
    assert!(rows.terminated.iter().any(|&terminated| terminated));
    assert!(rows.mass < 1.0);
}

#[test]
fn every_estimator_is_within_the_bounds_on_a_deterministic_ring() {
    for estimator in EstimatorChoice::all() {
        let scores = verify("ring", &ring(false, true), estimator, &Preset::tabular(estimator), 1).unwrap();
        for score in scores {
            assert!(score.judged);
            assert_eq!(score.complaint(), None, "{score:?}");
        }
    }
}

#[test]
fn estimators_are_saved_and_restored_bit_for_bit() {
    let problem = ring(true, false).problem(1).unwrap();
    let policies = TabularPolicies {
        mdp: &problem.mdp,
        policies: &problem.policies,
    };
    let data = draw(&problem, 2000, 1).map(|data| transitions(&data));
    for name in EstimatorChoice::all() {
        let mut settings = Preset::tabular(name).ratio;
        // Small enough that minibatches and their random order matter.
        (settings.minibatch, settings.hidden, settings.gradient_penalty) = (64, vec![16, 16], 1.0);
        let make = |seed| build(name, 2, policies.width(), problem.mdp.gamma, &settings, seed).unwrap();
        let train = |estimator: &mut Box<dyn Estimator>, round: usize| {
            estimator.update(&Round {
                policies: &policies,
                data: &data,
                seed: 5,
                round,
                updates: 7,
                rate: (1.0, 0.5),
            })
        };
        let bits = |estimator: &dyn Estimator| -> Vec<u32> {
            let log_zeta = estimator.log_zeta(0, 1, &policies, &data[1], 5, 9);
            log_zeta.iter().map(|x| x.to_bits()).collect()
        };
        let mut first = make(3);
        train(&mut first, 0);
        let mut checkpoint = Checkpoint::new(1, "");
        first.save(&mut checkpoint);
        let mut second = make(4);
        assert_ne!(bits(first.as_ref()), bits(second.as_ref()), "{name}");
        second.restore(&mut checkpoint).unwrap();
        assert_eq!(bits(first.as_ref()), bits(second.as_ref()), "{name}");
        let before = bits(first.as_ref());
        assert_eq!(
            train(&mut first, 1).to_bits(),
            train(&mut second, 1).to_bits(),
            "{name}"
        );
        assert_eq!(bits(first.as_ref()), bits(second.as_ref()), "{name}");
        assert_ne!(bits(first.as_ref()), before, "{name} learned nothing");
    }
}

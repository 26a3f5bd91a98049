//! Rings on which mistakes show.
//!
//! The bound on ζ says something about an estimator only where a wrong answer misses it. So a ring is used to verify
//! estimators if each of these, in both directions, is further from the exact ratio than the bound allows:
//!
//! ```text
//! π_a/π_b alone (states forgotten)        ζ ≡ 1        initial states uniform
//! without termination:   discount 1 - 2·(1-γ);   discount 1 - 0.3·(1-γ);   no discount (undiscounted occupancy)
//! with termination:      termination ignored
//! ```
//!
//! About one ring in seven (20 states) or fifteen (16 states) without termination is like that, and nearly all with it. Where
//! episodes terminate with up to 15 % a step, the discount hardly matters: ratios with a discount of 0.8 or 0.97 for 0.9
//! are within the bound on all but 5 of 2000 rings, so a wrong discount has to show on rings without termination.

use super::DIRECTIONS;
use super::score::{RMSE, weighted_rmse};
use crate::error::{Error, Result};
use crate::truth::{Ring, TabularMdp, TabularProblem};

/// Rings tried for one seed.
const ATTEMPTS: u64 = 1000;

/// The first ring on which mistakes show, of those numbered 1000·seed, 1000·seed + 1, …
pub fn telling_ring(ring: &Ring, seed: u64) -> Result<TabularProblem> {
    for attempt in 0..ATTEMPTS {
        let problem = ring.problem(seed.wrapping_mul(ATTEMPTS).wrapping_add(attempt))?;
        if mistakes(&problem).iter().all(|(_, error)| *error > RMSE) {
            return Ok(problem);
        }
    }
    Err(Error::failed(format!(
        "seed {seed} gives no ring on which mistakes show; choose another seed"
    )))
}

/// Mistakes by name, with the ρ_b-weighted root mean square error of their ζ_ab in the direction where it is smaller.
pub fn mistakes(problem: &TabularProblem) -> Vec<(&'static str, f64)> {
    let (mdp, policies) = (&problem.mdp, &problem.policies);
    let (states, rest) = (mdp.states, 1.0 - mdp.gamma);
    let terminating = mdp.termination.iter().any(|&ending| ending > 0.0);
    let smaller = |wrong: &dyn Fn(usize, usize) -> Vec<f64>| {
        let errors = DIRECTIONS.map(|(a, b)| {
            let (exact, wrong) = (mdp.zeta(&policies[a], &policies[b]), wrong(a, b));
            let rho = mdp.occupancy(&policies[b]).rho;
            weighted_rmse((0..rho.len()).map(|pair| (rho[pair], wrong[pair], exact[pair])))
        });
        errors[0].min(errors[1])
    };
    let with = |change: &dyn Fn(&mut TabularMdp)| {
        let mut other = mdp.clone();
        change(&mut other);
        smaller(&|a, b| other.zeta(&policies[a], &policies[b]))
    };
    let actions = |a: usize, b: usize| policies[a].iter().zip(&policies[b]).map(|(a, b)| a / b).collect();
    let mut mistakes = vec![
        ("states forgotten", smaller(&actions)),
        ("no difference", smaller(&|_, _| vec![1.0; policies[0].len()])),
        (
            "uniform start",
            with(&|mdp| mdp.initial = vec![1.0 / states as f64; states]),
        ),
    ];
    if terminating {
        mistakes.push(("termination ignored", with(&|mdp| mdp.termination.fill(0.0))));
    } else {
        mistakes.push(("lower discount", with(&|mdp| mdp.gamma = 1.0 - 2.0 * rest)));
        mistakes.push(("higher discount", with(&|mdp| mdp.gamma = 1.0 - 0.3 * rest)));
        mistakes.push(("no discount", with(&|mdp| mdp.gamma = 1.0 - 1e-9)));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::System;

    #[test]
    fn every_mistake_misses_the_bound_on_the_rings_that_are_used() {
        for system in System::all(true) {
            let System::Ring(ring) = system else { continue };
            for seed in 1..=10 {
                let problem = telling_ring(&ring, seed).unwrap();
                assert_eq!(mistakes(&problem).len(), if ring.termination { 4 } else { 6 });
                for (name, error) in mistakes(&problem) {
                    assert!(error > RMSE, "{} seed {seed}: {name} {error}", system.name());
                }
            }
        }
    }

    #[test]
    fn the_truth_is_no_mistake() {
        let ring = Ring {
            states: 20,
            actions: 3,
            gamma: 0.9,
            termination: true,
            deterministic: false,
        };
        let mut problem = ring.problem(1).unwrap();
        problem.mdp.termination.fill(0.0);
        problem.mdp.initial.fill(0.05);
        let by_name = mistakes(&problem);
        let uniform = by_name.iter().find(|(name, _)| *name == "uniform start").unwrap();
        assert!(uniform.1 < 1e-12);
    }
}

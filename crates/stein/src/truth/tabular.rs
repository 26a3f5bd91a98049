//! A Markov decision process with few states, whose occupancy comes from a linear solve.
//!
//! ```text
//! d(s') = (1-γ)·μ0(s') + γ·Σ_{s,a} d(s)·π(a|s)·(1 - τ(s,a))·P(s'|s,a)          (τ: probability of termination)
//! m     = Σ_s d(s) = 1 - E[γ^T]            ρ(s,a) = d(s)·π(a|s) / m            ζ_ab = ρ_a/ρ_b
//! ```
//!
//! T is the number of steps until termination; without termination m = 1. Arrays are flat, the last index fastest.
//! Reference: Puterman 1994, "Markov Decision Processes", section 6.9.

use super::dense::{Matrix, dot, solve};

/// A policy π(a|s) of a tabular process: `[S][A]`, each row sums to 1.
pub type TabularPolicy = Vec<f64>;

/// A Markov decision process of S states and A actions.
#[derive(Clone, Debug, PartialEq)]
pub struct TabularMdp {
    /// Number of states S.
    pub states: usize,
    /// Number of actions A.
    pub actions: usize,
    /// Discount γ in [0, 1).
    pub gamma: f64,
    /// Initial-state probabilities μ0, `[S]`.
    pub initial: Vec<f64>,
    /// Probabilities P(s'|s,a) of the next state if the episode does not end, `[S][A][S]`.
    pub transition: Vec<f64>,
    /// Rewards r(s,a), `[S][A]`.
    pub reward: Vec<f64>,
    /// Probabilities τ(s,a) that the episode ends after the pair, `[S][A]`.
    pub termination: Vec<f64>,
}

/// The stationary state-action distribution of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// ρ(s,a), `[S][A]`, normalised to 1 over the non-terminal pairs.
    pub rho: Vec<f64>,
    /// Its mass m = 1 - E[γ^T] before the normalisation.
    pub mass: f64,
}

impl TabularMdp {
    /// P(·|s,a): the row of the pair numbered s·A + a.
    pub fn next(&self, pair: usize) -> &[f64] {
        &self.transition[pair * self.states..][..self.states]
    }

    /// The occupancy of a policy.
    pub fn occupancy(&self, policy: &[f64]) -> Occupancy {
        let states = self.states;
        let mut system = Matrix::scaled_identity(states, 1.0);
        for (pair, &probability) in policy.iter().enumerate() {
            let flow = self.gamma * probability * (1.0 - self.termination[pair]);
            let state = pair / self.actions;
            if flow != 0.0 {
                for (next, &probability) in self.next(pair).iter().enumerate() {
                    system.entries[next * states + state] -= flow * probability;
                }
            }
        }
        let right = self.initial.iter().map(|mu| (1.0 - self.gamma) * mu).collect();
        let d = solve(system, right).expect("I - γ·Pᵀ is strictly diagonally dominant by columns since γ < 1");
        let mass: f64 = d.iter().sum();
        let rho = policy
            .iter()
            .enumerate()
            .map(|(pair, probability)| d[pair / self.actions] * probability / mass)
            .collect();
        Occupancy { rho, mass }
    }

    /// ζ_ab(s,a) = ρ_a/ρ_b of two policies, `[S][A]`; see [`Occupancy::zeta`] for pairs that b never visits.
    pub fn zeta(&self, a: &[f64], b: &[f64]) -> Vec<f64> {
        self.occupancy(a).zeta(&self.occupancy(b))
    }

    /// `η(π) = E_ρ[r]`, under the normalised occupancy.
    pub fn value(&self, policy: &[f64]) -> f64 {
        dot(&self.occupancy(policy).rho, &self.reward)
    }
}

impl Occupancy {
    /// ζ = ρ_self/ρ_b. If ρ_b = 0, it is 0 if ρ_self = 0 too (such a pair has no weight) and infinite otherwise.
    /// `serde_json` writes an infinite entry as `null`.
    pub fn zeta(&self, b: &Occupancy) -> Vec<f64> {
        let ratio = |(&p, &q): (&f64, &f64)| if p == 0.0 { 0.0 } else { p / q };
        self.rho.iter().zip(&b.rho).map(ratio).collect()
    }

    /// D_JS = ½·KL(p ‖ (p+q)/2) + ½·KL(q ‖ (p+q)/2), at most log 2.
    pub fn jensen_shannon(&self, other: &Occupancy) -> f64 {
        let half = |p: f64, q: f64| {
            if p == 0.0 {
                0.0
            } else {
                0.5 * p * (2.0 * p / (p + q)).ln()
            }
        };
        let pairs = self.rho.iter().zip(&other.rho);
        pairs.map(|(&p, &q)| half(p, q) + half(q, p)).sum()
    }

    /// D_KLS = KL(p‖q) + KL(q‖p); infinite if one visits a pair that the other never visits.
    pub fn symmetric_kl(&self, other: &Occupancy) -> f64 {
        let pairs = self.rho.iter().zip(&other.rho);
        pairs
            .map(|(&p, &q)| if p == q { 0.0 } else { (p - q) * (p / q).ln() })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Ring, TabularProblem};

    fn problem(termination: bool, deterministic: bool, seed: u64) -> TabularProblem {
        let ring = Ring {
            states: 20,
            actions: 3,
            gamma: 0.9,
            termination,
            deterministic,
        };
        ring.problem(seed).unwrap()
    }

    /// Action 0 stays in the first state, action 1 leads to the second, where both actions stay.
    fn two_states(gamma: f64) -> TabularMdp {
        TabularMdp {
            states: 2,
            actions: 2,
            gamma,
            initial: vec![1.0, 0.0],
            transition: vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
            reward: vec![1.0, 2.0, 4.0, 8.0],
            termination: vec![0.0; 4],
        }
    }

    /// Σ_t (1-γ)·γ^t·P(s_t = s, a_t = a), summed forward in time.
    fn by_power_iteration(mdp: &TabularMdp, policy: &[f64]) -> Vec<f64> {
        let mut now = mdp.initial.clone();
        let mut sum = vec![0.0; policy.len()];
        let mut weight = 1.0 - mdp.gamma;
        while weight > 1e-18 {
            let mut after = vec![0.0; mdp.states];
            for (pair, &probability) in policy.iter().enumerate() {
                let here = now[pair / mdp.actions] * probability;
                sum[pair] += weight * here;
                for (after, p) in after.iter_mut().zip(mdp.next(pair)) {
                    *after += here * (1.0 - mdp.termination[pair]) * p;
                }
            }
            now = after;
            weight *= mdp.gamma;
        }
        sum
    }

    #[test]
    fn the_solve_agrees_with_power_iteration() {
        for seed in 0..4 {
            let problem = problem(seed % 2 == 1, seed > 1, seed);
            for policy in &problem.policies {
                let occupancy = problem.mdp.occupancy(policy);
                let expected = by_power_iteration(&problem.mdp, policy);
                let mass: f64 = expected.iter().sum();
                assert!((occupancy.mass - mass).abs() < 1e-12);
                assert_eq!(mass < 0.99, seed % 2 == 1);
                for (rho, expected) in occupancy.rho.iter().zip(&expected) {
                    assert!((rho - expected / mass).abs() < 1e-13, "{rho} {expected}");
                }
            }
        }
    }

    #[test]
    fn the_bellman_flow_holds() {
        let problem = problem(true, false, 5);
        let (mdp, policy) = (&problem.mdp, &problem.policies[0]);
        let occupancy = mdp.occupancy(policy);
        for state in 0..mdp.states {
            let out: f64 = occupancy.rho[state * mdp.actions..][..mdp.actions].iter().sum();
            let arriving: f64 = (0..policy.len())
                .map(|pair| occupancy.rho[pair] * (1.0 - mdp.termination[pair]) * mdp.next(pair)[state])
                .sum();
            let flow = (1.0 - mdp.gamma) * mdp.initial[state] / occupancy.mass + mdp.gamma * arriving;
            assert!((out - flow).abs() < 1e-14, "state {state}: {out} {flow}");
        }
    }

    #[test]
    fn by_hand() {
        let mdp = two_states(0.5);
        let policy = vec![0.5, 0.5, 0.25, 0.75];
        // d(0) = ½ + ½·½·d(0), so ⅔; d(1) is the rest.
        let occupancy = mdp.occupancy(&policy);
        for (rho, expected) in occupancy.rho.iter().zip([1.0 / 3.0, 1.0 / 3.0, 1.0 / 12.0, 0.25]) {
            assert!((rho - expected).abs() < 1e-15);
        }
        assert!((occupancy.mass - 1.0).abs() < 1e-15);
        assert!((mdp.value(&policy) - (1.0 + 1.0 / 3.0 + 2.0)).abs() < 1e-14);
    }

    #[test]
    fn termination_after_a_certain_step_leaves_a_known_mass() {
        let mut mdp = two_states(0.8);
        // Straight to the second state and out: T = 2.
        mdp.termination = vec![0.0, 0.0, 1.0, 1.0];
        let occupancy = mdp.occupancy(&[0.0, 1.0, 0.5, 0.5]);
        assert!((occupancy.mass - (1.0 - 0.64)).abs() < 1e-15);
        assert!((occupancy.rho[1] - 0.2 / 0.36).abs() < 1e-15);
        assert!((occupancy.rho[2] - 0.08 / 0.36).abs() < 1e-15);
    }

    #[test]
    fn gamma_zero_leaves_the_initial_states() {
        let mut problem = problem(true, false, 1);
        problem.mdp.gamma = 0.0;
        let occupancy = problem.mdp.occupancy(&problem.policies[0]);
        assert_eq!(occupancy.mass, 1.0);
        for (pair, rho) in occupancy.rho.iter().enumerate() {
            assert_eq!(*rho, problem.mdp.initial[pair / 3] * problem.policies[0][pair]);
        }
    }

    #[test]
    fn gamma_next_to_one_is_still_solved() {
        let mut problem = problem(false, false, 1);
        problem.mdp.gamma = 1.0 - 1e-9;
        let occupancy = problem.mdp.occupancy(&problem.policies[0]);
        assert!((occupancy.mass - 1.0).abs() < 1e-5, "{}", occupancy.mass);
        assert!(occupancy.rho.iter().all(|&rho| rho > 0.0));
    }

    #[test]
    fn zeta_has_mean_one_and_is_one_of_equal_policies() {
        let problem = problem(true, true, 2);
        let [a, b] = &problem.policies;
        let b_rho = problem.mdp.occupancy(b).rho;
        assert!((dot(&problem.mdp.zeta(a, b), &b_rho) - 1.0).abs() < 1e-12);
        assert!(problem.mdp.zeta(b, b).iter().all(|&zeta| zeta == 1.0));
        let product = problem.mdp.zeta(a, b).into_iter().zip(problem.mdp.zeta(b, a));
        product.for_each(|(ab, ba)| assert!((ab * ba - 1.0).abs() < 1e-12));
    }

    #[test]
    fn zeta_where_b_never_goes_is_zero_or_infinite_and_null_in_json() {
        let mdp = two_states(0.5);
        let (stay, go) = (vec![1.0, 0.0, 1.0, 0.0], vec![0.0, 1.0, 1.0, 0.0]);
        // `stay` never leaves state 0; `go` never stays there; neither takes action 1 in state 1.
        let zeta = mdp.zeta(&go, &stay);
        assert_eq!(zeta, [0.0, f64::INFINITY, f64::INFINITY, 0.0]);
        assert_eq!(serde_json::to_string(&zeta).unwrap(), "[0.0,null,null,0.0]");
        let (stay, go) = (mdp.occupancy(&stay), mdp.occupancy(&go));
        assert!((stay.jensen_shannon(&go) - std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(stay.symmetric_kl(&go), f64::INFINITY);
    }

    #[test]
    fn divergences_by_hand() {
        let occupancy = |p: f64| Occupancy {
            rho: vec![p, 1.0 - p, 0.0],
            mass: 1.0,
        };
        let (p, q) = (occupancy(0.5), occupancy(0.25));
        let js = 0.25 * (4.0f64 / 3.0).ln() + 0.25 * 0.8f64.ln() + 0.125 * (2.0f64 / 3.0).ln() + 0.375 * 1.2f64.ln();
        assert!((p.jensen_shannon(&q) - js).abs() < 1e-15);
        assert!((p.jensen_shannon(&q) - q.jensen_shannon(&p)).abs() < 1e-15);
        assert!((p.symmetric_kl(&q) - 0.25 * 3f64.ln()).abs() < 1e-15);
        assert_eq!(p.jensen_shannon(&p), 0.0);
        assert_eq!(p.symmetric_kl(&p), 0.0);
    }
}

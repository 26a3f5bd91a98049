//! Transitions of a policy, as ratio estimators see them.

/// N transitions (s, a, s', terminated) with weights, and M initial states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// States, row after row.
    pub states: Vec<f32>,
    /// Actions.
    pub actions: Vec<f32>,
    /// Behaviour φ(s), row after row, where ratios are of it; empty where they are of (s,a).
    pub behaviour: Vec<f32>,
    /// Next states.
    pub next_states: Vec<f32>,
    /// Whether the episode ended by itself after this transition: then ν(s',a') = 0.
    pub terminated: Vec<bool>,
    /// Weights of the transitions (γ^t, or counts), up to a factor.
    pub weights: Vec<f32>,
    /// Least t of a rollout: its weights are γ^(t - begins), so that they do not vanish where an episode began long before it.
    pub begins: u32,
    /// Initial states.
    pub initial: Vec<f32>,
    /// Weights of the initial states, of mean 1.
    pub initial_weights: Vec<f32>,
    /// Mass m = 1 - E[γ^T] of the policy's occupancy over non-terminal pairs; 1 without termination.
    pub mass: f32,
}

impl Transitions {
    /// Number of transitions.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Scales both sets of weights to mean 1.
    pub fn scale_weights(&mut self) {
        for weights in [&mut self.weights, &mut self.initial_weights] {
            let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            let scale = weights.len() as f64 / total;
            weights.iter_mut().for_each(|w| *w = (f64::from(*w) * scale) as f32);
        }
    }

    /// Effective sample size of the weights: (Σw)²/Σw².
    pub fn effective_size(&self) -> f64 {
        let (sum, squares) = self.weights.iter().fold((0.0f64, 0.0f64), |(sum, squares), &w| {
            (sum + f64::from(w), squares + f64::from(w).powi(2))
        });
        sum * sum / squares
    }
}

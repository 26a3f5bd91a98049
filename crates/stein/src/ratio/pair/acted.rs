//! A network evaluated on (s, a) with actions of a policy: v(s) = Σ_k w_k·v(s, a_k), forwards and backwards.
//!
//! Sampled actions weigh 1/K each; where actions can be summed over, all of them weigh their probability.

use crate::nn::{Gradient, Network, Scratch, Shape};
use crate::ratio::policies::{Policies, Workspace};
use crate::rng::Stream;

/// Buffers for K actions in each of up to `capacity` states.
pub struct Acted {
    passes: Vec<Scratch<f32>>,
    /// Weight of action k in state b: `[K][capacity]`.
    weights: Vec<f32>,
    states: Vec<f32>,
    actions: Vec<f32>,
    features: Vec<f32>,
    capacity: usize,
    workspace: Workspace,
}

impl Acted {
    /// Buffers for networks of this shape.
    pub fn new(shape: &Shape, policies: &dyn Policies, capacity: usize, draws: usize) -> Self {
        Acted {
            passes: (0..draws).map(|_| Scratch::new(shape, capacity)).collect(),
            weights: vec![0.0; draws * capacity],
            states: vec![0.0; capacity * policies.state_width()],
            actions: vec![0.0; capacity * policies.action_width()],
            features: vec![0.0; capacity * policies.width()],
            capacity,
            workspace: policies.workspace(capacity),
        }
    }

    /// Evaluates v in the states at `indices` with actions of `policy`; `values[b]` becomes Σ_k w_k·v(s_b, a_k).
    #[allow(clippy::too_many_arguments)]
    pub fn forward(
        &mut self,
        network: Network<'_, f32>,
        policies: &dyn Policies,
        policy: usize,
        states: &[f32],
        indices: &[u32],
        random: &mut Stream,
        values: &mut [f32],
    ) {
        let (state, action, width) = (policies.state_width(), policies.action_width(), policies.width());
        let rows = &mut self.states[..indices.len() * state];
        for (row, &index) in rows.chunks_exact_mut(state).zip(indices) {
            row.copy_from_slice(&states[index as usize * state..][..state]);
        }
        let share = if policies.action_count().is_some() {
            1.0
        } else {
            1.0 / self.passes.len() as f32
        };
        values.fill(0.0);
        for (draw, pass) in self.passes.iter_mut().enumerate() {
            let weights = &mut self.weights[draw * self.capacity..][..indices.len()];
            let actions = &mut self.actions[..indices.len() * action];
            policies.act(policy, rows, draw, random, &mut self.workspace, actions, weights);
            let features = &mut self.features[..indices.len() * width];
            policies.encode(rows, actions, features);
            pass.load_input(features);
            network.forward(pass);
            for ((value, weight), &v) in values.iter_mut().zip(weights).zip(pass.output(0)) {
                *weight *= share;
                *value += *weight * v;
            }
        }
    }

    /// Adds the gradient of a loss whose derivatives in the values of [`Acted::forward`] are `derivatives`.
    pub fn backward(&mut self, network: Network<'_, f32>, derivatives: &[f32], gradient: &mut Gradient<f32>) {
        for (draw, pass) in self.passes.iter_mut().enumerate() {
            let weights = &self.weights[draw * self.capacity..];
            for ((delta, weight), derivative) in pass.output_delta(0).iter_mut().zip(weights).zip(derivatives) {
                *delta = weight * derivative;
            }
            network.backward(pass, gradient);
        }
    }

    /// The first pass, for its inputs.
    pub fn first_pass(&self) -> &Scratch<f32> {
        &self.passes[0]
    }
}

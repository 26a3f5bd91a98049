//! The policies as ratio estimators see them: features of (s,a), and actions of any policy in any state.

use rand_distr::{Distribution, StandardNormal};

use super::Transitions;
use crate::nn::{Normalizer, Scratch};
use crate::policy::Ensemble;
use crate::policy::gaussian::bounded_mean;
use crate::rng::Stream;

/// n policies over a common space of states and actions.
pub trait Policies: Sync {
    /// Length of a state.
    fn state_width(&self) -> usize;

    /// Length of an action.
    fn action_width(&self) -> usize;

    /// Features of (s,a) that the networks see.
    fn width(&self) -> usize;

    /// Writes the features of rows of (s,a).
    fn encode(&self, states: &[f32], actions: &[f32], features: &mut [f32]);

    /// Features of all samples of the data: of (s,a), or of their behaviour.
    fn features(&self, data: &Transitions) -> Vec<f32> {
        let mut features = vec![0.0; data.len() * self.width()];
        self.encode(&data.states, &data.actions, &mut features);
        features
    }

    /// Number of actions, where they can be summed over exactly.
    fn action_count(&self) -> Option<usize> {
        None
    }

    /// Writes actions of policy `policy` in the rows of `states`: sampled ones with weight 1, or, where they can be summed
    /// over, action number `draw` with its probability.
    #[allow(clippy::too_many_arguments)]
    fn act(
        &self,
        policy: usize,
        states: &[f32],
        draw: usize,
        random: &mut Stream,
        workspace: &mut Workspace,
        actions: &mut [f32],
        weights: &mut [f32],
    );

    /// Buffers for batches up to `capacity`.
    fn workspace(&self, capacity: usize) -> Workspace;
}

/// Buffers of [`Policies::act`].
pub struct Workspace {
    /// Of the policy network, where there is one.
    pub scratch: Option<Scratch<f32>>,
    /// Normalised states.
    pub normalized: Vec<f32>,
}

/// The ensemble's Gaussian policies; features are (s, a) or φ(s), normalised.
pub struct GaussianPolicies<'a> {
    /// The policies.
    pub ensemble: &'a Ensemble,
    /// Normaliser of the features.
    pub features: &'a Normalizer,
}

impl Policies for GaussianPolicies<'_> {
    fn state_width(&self) -> usize {
        self.ensemble.policies.shape.input()
    }

    fn action_width(&self) -> usize {
        self.ensemble.policies.shape.output()
    }

    fn width(&self) -> usize {
        self.features.mean.len()
    }

    fn encode(&self, states: &[f32], actions: &[f32], features: &mut [f32]) {
        join_rows(states, self.state_width(), actions, self.action_width(), features);
        self.features.apply_in_place(features);
    }

    fn features(&self, data: &Transitions) -> Vec<f32> {
        let mut features = data.behaviour.clone();
        if features.is_empty() {
            features.resize(data.len() * self.width(), 0.0);
            self.encode(&data.states, &data.actions, &mut features);
        } else {
            self.features.apply_in_place(&mut features);
        }
        features
    }

    fn act(
        &self,
        policy: usize,
        states: &[f32],
        _draw: usize,
        random: &mut Stream,
        workspace: &mut Workspace,
        actions: &mut [f32],
        weights: &mut [f32],
    ) {
        let normalized = &mut workspace.normalized[..states.len()];
        self.ensemble.normalizers[policy].apply_all(states, normalized);
        let network = self.ensemble.network(policy);
        let scratch = workspace.scratch.as_mut().expect("the workspace is this type's own");
        scratch.load_input(normalized);
        network.forward(scratch);
        let width = self.action_width();
        for (d, &log_std) in network.extra().iter().enumerate() {
            let std = log_std.exp();
            for (row, &output) in scratch.output(d).iter().enumerate() {
                let epsilon: f32 = StandardNormal.sample(random);
                actions[row * width + d] = (bounded_mean(output) + std * epsilon).tanh();
            }
        }
        weights.fill(1.0);
    }

    fn workspace(&self, capacity: usize) -> Workspace {
        let shape = &self.ensemble.policies.shape;
        Workspace {
            scratch: Some(Scratch::new(shape, capacity)),
            normalized: vec![0.0; capacity * shape.input()],
        }
    }
}

/// Rows of (s,a) from rows of s and rows of a.
pub fn join_rows(states: &[f32], state_width: usize, actions: &[f32], action_width: usize, joined: &mut [f32]) {
    let rows = joined.chunks_exact_mut(state_width + action_width);
    for ((row, state), action) in rows
        .zip(states.chunks_exact(state_width))
        .zip(actions.chunks_exact(action_width))
    {
        row[..state_width].copy_from_slice(state);
        row[state_width..].copy_from_slice(action);
    }
}

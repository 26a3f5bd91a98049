//! Random streams. Every stream is a function of (seed, purpose, policy, iteration) and of nothing else.
//!
//! ```text
//! ChaCha8 key = seed ‖ purpose ‖ policy ‖ iteration      (4 × 64 bits)
//! ```
//!
//! ChaCha is a counter-based generator, so no stream has state worth saving: a resumed run, or a run with another
//! number of threads, derives the same streams again. Reference: Bernstein 2008, "ChaCha, a variant of Salsa20".

use rand::SeedableRng;
pub use rand_chacha::ChaCha8Rng as Stream;

/// What a stream is for. The numbers are part of the results of a seed: never renumber, only add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// First weights of the policies.
    PolicyInit = 1,
    /// First weights of the critics.
    CriticInit = 2,
    /// Actions while collecting rollouts.
    Rollout = 3,
    /// Seeds of the episodes of training.
    Episode = 4,
    /// Order of the samples in the PPO epochs.
    Minibatch = 5,
    /// Seeds and actions of evaluation episodes.
    Evaluation = 6,
    /// Systems with exact answers: their generators and the data drawn from them.
    Truth = 7,
    /// First weights of the ratio networks.
    RatioInit = 8,
    /// Order of the samples in ratio updates.
    RatioOrder = 9,
    /// Next and initial actions in ratio updates.
    RatioAction = 10,
    /// Weights and order of the classifier that ratios are held against.
    Classifier = 11,
    /// Which samples the pool of pooled ratio estimators holds.
    RatioPool = 12,
    /// Noise through which behaviour is seen.
    Behaviour = 13,
    /// Order of the samples that tell a policy's best trajectories from its own steps.
    Imitation = 14,
    /// Draws of a bootstrap.
    Bootstrap = 15,
    /// States and networks of the policies' information.
    Information = 20,
}

/// The stream of `purpose` for one policy in one iteration.
pub fn stream(seed: u64, purpose: Purpose, policy: usize, iteration: usize) -> Stream {
    let mut key = [0u8; 32];
    let words = [seed, purpose as u64, policy as u64, iteration as u64];
    for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Stream::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_in_every_coordinate_and_repeat_exactly() {
        let first = |seed, purpose, policy, iteration| stream(seed, purpose, policy, iteration).next_u64();
        let base = first(1, Purpose::Rollout, 0, 0);
        assert_eq!(base, first(1, Purpose::Rollout, 0, 0));
        assert_ne!(base, first(2, Purpose::Rollout, 0, 0));
        assert_ne!(base, first(1, Purpose::Episode, 0, 0));
        assert_ne!(base, first(1, Purpose::Rollout, 1, 0));
        assert_ne!(base, first(1, Purpose::Rollout, 0, 1));
    }
}

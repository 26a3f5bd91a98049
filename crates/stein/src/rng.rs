//! Random streams. Every stream depends on (seed, purpose, policy, iteration) only.
//!
//! ```text
//! ChaCha8 key = seed ‖ purpose ‖ policy ‖ iteration      (4 × 64 bits)
//! ```
//!
//! ChaCha is a counter-based generator, so no stream has state to save: a resumed run, or one with another number of
//! threads, derives the same streams again. Reference: Bernstein 2008, "ChaCha, a variant of Salsa20".

use rand::SeedableRng;
pub use rand_chacha::ChaCha8Rng as Stream;

/// What a stream is for. The numbers determine the results of a seed: never renumber, only add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of the policies.
    PolicyInit = 1,
    /// Initial weights of the critics.
    CriticInit = 2,
    /// Actions while collecting rollouts.
    Rollout = 3,
    /// Seeds of training episodes.
    Episode = 4,
    /// Order of the samples in the PPO epochs.
    Minibatch = 5,
    /// Seeds and actions of evaluation episodes.
    Evaluation = 6,
    /// Systems with exact ratios: their generators and the data drawn from them.
    Truth = 7,
    /// Initial weights of the ratio networks.
    RatioInit = 8,
    /// Order of the samples in ratio updates.
    RatioOrder = 9,
    /// Next and initial actions in ratio updates.
    RatioAction = 10,
    /// Weights and sample order of the reference classifier.
    Classifier = 11,
    /// Which samples are in the pool of pooled ratio estimators.
    RatioPool = 12,
    /// Noise added to behaviour.
    Behaviour = 13,
    /// Order of the samples of the classifier of best versus newest steps.
    Imitation = 14,
    /// Resampling of a bootstrap.
    Bootstrap = 15,
    /// States and networks for the mutual information of policies.
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

//! Exponential averages of the networks of a stack: θ̄ ← decay·θ̄ + (1-decay)·θ at every step, read as θ̄ divided by its total
//! weight, so that the first steps count in full (as in Adam's correction of its moments).

use super::network::{Frozen, Network};
use super::{Member, Shape};
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// Averages of P networks of one shape.
pub struct Average {
    shape: Shape,
    /// Network after network.
    sums: Vec<f32>,
    /// Total weight of the steps so far.
    weight: f64,
}

impl Average {
    /// Of no steps yet.
    pub fn new(shape: &Shape, members: usize) -> Self {
        Average {
            sums: vec![0.0; members * shape.parameters()],
            shape: shape.clone(),
            weight: 0.0,
        }
    }

    /// The averages, one a network, to follow its steps.
    pub fn members_mut(&mut self) -> Vec<Follower<'_>> {
        let each = self.sums.chunks_exact_mut(self.shape.parameters());
        each.map(|sums| Follower { sums }).collect()
    }

    /// Notes that every network has taken so many steps.
    pub fn count(&mut self, steps: usize, decay: f64) {
        let power = decay.powi(steps.min(i32::MAX as usize) as i32);
        self.weight = 1.0 - (1.0 - self.weight) * power;
    }

    /// The average of network `member`, or `present` where there have been no steps.
    pub fn read(&self, member: usize, present: Network<'_, f32>) -> Frozen<f32> {
        if self.weight == 0.0 {
            return present.frozen();
        }
        let (size, scale) = (self.shape.parameters(), (1.0 / self.weight) as f32);
        Frozen {
            shape: self.shape.clone(),
            parameters: self.sums[member * size..][..size].iter().map(|x| x * scale).collect(),
        }
    }

    /// Adds all state to a checkpoint under `name`.
    pub fn save(&self, name: &str, checkpoint: &mut Checkpoint) {
        checkpoint.insert_f32(name, &[self.sums.len()], &self.sums);
        checkpoint.insert_f64(&format!("{name}_weight"), &[1], &[self.weight]);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, name: &str, checkpoint: &mut Checkpoint) -> Result<()> {
        self.sums = checkpoint.take_f32(name, &[self.sums.len()])?;
        self.weight = checkpoint.take_f64(&format!("{name}_weight"), &[1])?[0];
        Ok(())
    }
}

/// The average of one network.
pub struct Follower<'a> {
    sums: &'a mut [f32],
}

impl Follower<'_> {
    /// Follows one step of the network.
    pub fn follow(&mut self, member: &Member<'_, f32>, decay: f32) {
        let add = 1.0 - decay;
        for (sum, &x) in self.sums.iter_mut().zip(member.network().parameters) {
            *sum = decay * *sum + add * x;
        }
    }
}

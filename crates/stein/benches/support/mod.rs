//! All-pairs DualDICE update on random data: what the bench times and the allocation test watches.
//!
//! Per minibatch: three passes of ν, over (s,a), (s',a') and (s0,a0), and one of g, each forward and backward, then Adam.

use stein::nn::{AdamConfig, Gradient, Pool, Scratch, Shape, Stack, Step};
use stein::parallel;
use stein::rng::{Purpose, stream};

use rand::RngExt;

/// Minibatches an update.
pub const MINIBATCHES: usize = 8;
/// Samples a minibatch.
pub const BATCH: usize = 512;

/// Stacks of ν and g networks with fixed random data.
pub struct AllPairs {
    shape: Shape,
    nu: Stack<f32>,
    g: Stack<f32>,
    data: Vec<f32>,
    pool: Pool<Buffers>,
}

struct Buffers {
    now: Scratch<f32>,
    next: Scratch<f32>,
    first: Scratch<f32>,
    zeta: Scratch<f32>,
    gradient_nu: Gradient<f32>,
    gradient_g: Gradient<f32>,
}

impl Buffers {
    fn new(shape: &Shape) -> Self {
        let scratch = || Scratch::new(shape, BATCH);
        Buffers {
            now: scratch(),
            next: scratch(),
            first: scratch(),
            zeta: scratch(),
            gradient_nu: Gradient::new(shape),
            gradient_g: Gradient::new(shape),
        }
    }
}

impl AllPairs {
    pub fn new(members: usize, input: usize) -> Self {
        let shape = Shape::new(input, &[100, 100], 1);
        let stack = |purpose| {
            Stack::new(shape.clone(), members, AdamConfig::default(), (1.0, 0.1), |p| {
                stream(1, purpose, p, 0)
            })
        };
        let (nu, g) = (stack(Purpose::PolicyInit), stack(Purpose::CriticInit));
        let mut random = stream(1, Purpose::Rollout, 0, 0);
        let data = (0..3 * MINIBATCHES * BATCH * input)
            .map(|_| random.random_range(-1.0..1.0))
            .collect();
        AllPairs {
            shape,
            nu,
            g,
            data,
            pool: Pool::default(),
        }
    }

    /// Multiplications and additions of the networks in one update.
    pub fn flops(&self) -> f64 {
        let pass = self.nu.shape.forward_flops() + self.nu.shape.backward_flops();
        pass * 4.0 * (MINIBATCHES * BATCH * self.nu.members()) as f64
    }

    /// One pass over the data for every member.
    pub fn update(&mut self) {
        let shape = &self.shape;
        let gamma = 0.99f32;
        let step = Step { rate: 5e-4, clip: 1.0 };
        let rows = BATCH * shape.input();
        let (pool, data) = (&self.pool, &self.data);
        let members = (self.nu.members_mut(), self.g.members_mut());
        parallel::for_each(members, |_, (mut nu, mut g)| {
            pool.with(
                || Buffers::new(shape),
                |buffers| {
                    let Buffers {
                        now,
                        next,
                        first,
                        zeta,
                        gradient_nu,
                        gradient_g,
                    } = buffers;
                    for part in data.chunks_exact(3 * rows) {
                        now.load_input(&part[..rows]);
                        next.load_input(&part[rows..2 * rows]);
                        first.load_input(&part[2 * rows..]);
                        zeta.load_input(&part[..rows]);
                        for scratch in [&mut *now, &mut *next, &mut *first] {
                            nu.network().forward(scratch);
                        }
                        g.network().forward(zeta);
                        let share = 1.0 / BATCH as f32;
                        for b in 0..BATCH {
                            let ratio = 1.0 + zeta.output(0)[b];
                            let residual = now.output(0)[b] - gamma * next.output(0)[b];
                            now.output_delta(0)[b] = share * ratio;
                            next.output_delta(0)[b] = -gamma * share * ratio;
                            first.output_delta(0)[b] = -(1.0 - gamma) * share;
                            zeta.output_delta(0)[b] = -share * (residual - ratio);
                        }
                        gradient_nu.clear();
                        gradient_g.clear();
                        for scratch in [&mut *now, &mut *next, &mut *first] {
                            nu.network().backward(scratch, gradient_nu);
                        }
                        g.network().backward(zeta, gradient_g);
                        nu.descend(gradient_nu, step);
                        g.descend(gradient_g, step);
                    }
                },
            );
        });
    }
}

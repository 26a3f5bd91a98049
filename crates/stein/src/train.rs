//! Algorithm 1: the training loop.

use std::time::Instant;

use rand::seq::SliceRandom;

use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::env::{Spec, Task};
use crate::error::{Error, Result};
use crate::foresee;
use crate::method::Method;
use crate::metric::Metric;
use crate::parallel;
use crate::policy::reward::RewardScaler;
use crate::policy::{Critics, Ensemble, RewardScaling, Rollout, Worker};
use crate::rng::{Purpose, stream};
use crate::update::{UpdateReport, Updater, entropy};

/// An ensemble in training: all of its state.
pub struct Trainer {
    /// The settings.
    pub config: Config,
    /// Sizes and names of the environment.
    pub spec: Spec,
    /// The policies.
    pub ensemble: Ensemble,
    critics: Critics,
    workers: Vec<Worker>,
    scalers: Vec<RewardScaler>,
    method: Box<dyn Method>,
    updater: Updater,
    rollouts: Vec<Rollout>,
    iteration: usize,
}

/// What one iteration did.
#[derive(Clone, Debug)]
pub struct Record {
    /// Iterations done, this one included.
    pub iteration: usize,
    /// Values of the metrics, in the order of [`Trainer::metric_names`].
    pub metrics: Vec<f64>,
    /// Wall times.
    pub timings: Timings,
}

/// Seconds spent in the phases of an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Stepping the environments.
    pub rollout: f64,
    /// Ratio estimation, kernels and diversity rewards.
    pub ratio: f64,
    /// Values and advantages.
    pub advantages: f64,
    /// Updates of critics and policies.
    pub update: f64,
    /// All of it.
    pub total: f64,
}

impl Trainer {
    /// Draws a new ensemble.
    pub fn new(mut config: Config, task: &dyn Task) -> Result<Self> {
        config.validate()?;
        config.resolve(task)?;
        let (n, seed) = (config.ensemble, config.seed);
        let spec = task.make()?.spec().clone();
        foresee::check(&config, &spec)?;
        let method = config.method.build(&config, &spec)?;
        let worker = |i| Ok(Worker::new(task, seed, i)?.recording(method.behaviour()));
        let workers = (0..n).map(worker).collect::<Result<Vec<_>>>()?;
        let minibatch = config.ppo.minibatch(config.steps);
        let ensemble = Ensemble::new(n, &spec, &config.policy, &config.ppo, seed).with_minibatch(minibatch);
        let streams = method.streams() + 1;
        Ok(Trainer {
            critics: Critics::new(
                n,
                streams,
                spec.observation,
                &config.critic,
                &config.ppo,
                config.steps,
                seed,
            ),
            updater: Updater::new(n, &ensemble.policies.shape, config.steps, &config.ppo),
            scalers: vec![RewardScaler::default(); n],
            rollouts: vec![Rollout::default(); n],
            iteration: 0,
            config,
            spec,
            ensemble,
            workers,
            method,
        })
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// Steps of all policies together in so many iterations.
    pub fn env_steps(&self, iterations: usize) -> usize {
        iterations * self.config.steps * self.config.ensemble
    }

    /// The rollouts of the last iteration, by the policies as they were before its update.
    pub fn rollouts(&self) -> &[Rollout] {
        &self.rollouts
    }

    /// One iteration of Algorithm 1.
    pub fn iterate(&mut self) -> Result<Record> {
        let mut clock = Clock::new();
        self.collect()?;
        let rollout = clock.lap();

        let guidance = self.method.guide(&self.ensemble, &self.rollouts, self.iteration)?;
        let ratio = clock.lap();

        let task_rewards = self.task_rewards();
        let streams = self.method.streams();
        let rewards = |i: usize, s: usize| match s {
            0 => &task_rewards[i][..],
            s => &guidance.rewards[i * streams + s - 1][..],
        };
        let units = |s: usize| guidance.units[s];
        let advantages = self
            .critics
            .advantages(&self.rollouts, rewards, &self.config.ppo, units);
        let advantages_seconds = clock.lap();

        let (orders, rate) = (self.minibatch_orders(), self.learning_rate());
        let ppo = &self.config.ppo;
        let value_loss = self.critics.update(&self.rollouts, &advantages, &orders, ppo, rate);
        let reports = self.updater.update(
            &mut self.ensemble,
            &self.rollouts,
            &advantages,
            &guidance,
            &orders,
            ppo,
            rate,
        );
        self.check(&reports)?;
        self.ensemble.update_normalizers(&self.rollouts);
        let update = clock.lap();

        self.iteration += 1;
        let critics = 0..self.config.ensemble * (streams + 1);
        let explained = |task: bool| {
            let chosen = critics.clone().filter(|critic| (critic % (streams + 1) == 0) == task);
            mean(chosen.map(|critic| advantages.explained_variance(critic)))
        };
        let explained = [explained(true), explained(false)];
        let size = |critic: usize| {
            let (i, s) = (critic / (streams + 1), critic % (streams + 1));
            f64::from(guidance.streams[i * streams + s - 1]) * advantages.size(critic)
        };
        let size = mean(critics.filter(|critic| critic % (streams + 1) > 0).map(size));
        Ok(Record {
            iteration: self.iteration,
            metrics: self.metrics(&reports, value_loss, explained, size, rate),
            timings: Timings {
                rollout,
                ratio,
                advantages: advantages_seconds,
                update,
                total: clock.total(),
            },
        })
    }

    /// Rollouts with every policy, in parallel over policies.
    fn collect(&mut self) -> Result<()> {
        let (ensemble, iteration, steps) = (&self.ensemble, self.iteration, self.config.steps);
        // Collected in order, so that of several failures it is always the same one that is told.
        let parts = (&mut self.workers[..], &mut self.rollouts[..]);
        let results: Vec<Result<()>> = parallel::map(parts, |i, (worker, rollout)| {
            worker.collect(ensemble.actor(i), &ensemble.normalizers[i], iteration, steps, rollout)
        });
        results
            .into_iter()
            .collect::<Result<()>>()
            .map_err(|error| match error {
                Error::Failed(sentence) => Error::failed(format!("iteration {}: {sentence}", iteration + 1)),
                other => other,
            })
    }

    fn task_rewards(&mut self) -> Vec<Vec<f32>> {
        let gamma = self.config.ppo.gamma;
        let scaling = self.config.ppo.reward_scaling;
        let each = self.rollouts.iter().zip(&mut self.scalers);
        each.map(|(rollout, scaler)| match scaling {
            RewardScaling::None => rollout.rewards.clone(),
            RewardScaling::Return => scaler.scale(rollout, gamma),
        })
        .collect()
    }

    /// Sample numbers of every policy, shuffled anew for each epoch.
    fn minibatch_orders(&self) -> Vec<Vec<u32>> {
        let steps = self.config.steps as u32;
        let order = |i| {
            let mut random = stream(self.config.seed, Purpose::Minibatch, i, self.iteration);
            let mut order = Vec::with_capacity(self.config.ppo.epochs * self.config.steps);
            for _ in 0..self.config.ppo.epochs {
                let first = order.len();
                order.extend(0..steps);
                order[first..].shuffle(&mut random);
            }
            order
        };
        (0..self.config.ensemble).map(order).collect()
    }

    fn learning_rate(&self) -> f64 {
        let ppo = &self.config.ppo;
        ppo.learning_rate * ppo.anneal.left(self.iteration as f64 / self.config.iterations as f64)
    }

    fn check(&self, reports: &[UpdateReport]) -> Result<()> {
        match reports.iter().position(|report| !report.gradient_norm.is_finite()) {
            None => Ok(()),
            Some(i) => Err(Error::failed(format!(
                "iteration {}: the gradient of policy {i} is not finite; lower ppo.learning_rate or check the rewards",
                self.iteration + 1
            ))),
        }
    }

    /// Names of the metrics of an iteration. docs/metrics.md explains each.
    pub fn metric_names(&self) -> Vec<String> {
        let mut names: Vec<String> = METRICS.iter().map(|metric| metric.name.to_string()).collect();
        names.extend((0..self.config.ensemble).map(|i| format!("return_{i}")));
        names.extend(self.method.metrics().iter().map(|(metric, _)| metric.name.to_string()));
        names
    }

    /// The metrics that are listed beside what computes them: all but the returns of single policies.
    pub fn listed_metrics(&self) -> Vec<Metric> {
        let own = self.method.metrics().into_iter().map(|(metric, _)| metric);
        METRICS.into_iter().chain(own).collect()
    }

    fn metrics(
        &self,
        reports: &[UpdateReport],
        value_loss: f64,
        explained: [f64; 2],
        size: f64,
        rate: f64,
    ) -> Vec<f64> {
        let returns: Vec<f64> = self
            .rollouts
            .iter()
            .map(|rollout| mean(rollout.episodes.iter().map(|e| e.0)))
            .collect();
        let known = || returns.iter().copied().filter(|r| r.is_finite());
        let lengths = self
            .rollouts
            .iter()
            .flat_map(|rollout| rollout.episodes.iter().map(|e| e.1 as f64));
        let mut metrics = vec![
            mean(known()),
            known().fold(f64::NAN, f64::max),
            known().fold(f64::NAN, f64::min),
            self.rollouts.iter().map(|rollout| rollout.episodes.len() as f64).sum(),
            mean(lengths),
            self.rollouts.iter().map(|rollout| rollout.unstable as f64).sum(),
            mean(self.rollouts.iter().map(entropy)),
            mean(reports.iter().map(|r| r.approximate_kl)),
            mean(reports.iter().map(|r| r.clip_fraction)),
            mean(reports.iter().map(|r| r.gradient_norm)),
            mean(reports.iter().map(|r| r.steps_taken)),
            value_loss,
            explained[0],
            explained[1],
            size,
            rate,
            self.env_steps(self.iteration) as f64,
        ];
        metrics.extend(returns);
        metrics.extend(self.method.metrics().iter().map(|(_, value)| value));
        // Beyond what a number can hold: not measured.
        let measured = |value: f64| if value.is_infinite() { f64::NAN } else { value };
        metrics.into_iter().map(measured).collect()
    }

    /// The kernel matrix of the last iteration, where the method has one.
    pub fn kernel(&self) -> Option<&[f64]> {
        self.method.kernel()
    }

    /// The pairs (i, j), i ≠ j, whose values make up the kernel matrix: i < j, and both orders where it is not symmetric.
    /// None where the method has no kernel.
    pub fn kernel_pairs(&self) -> Vec<(usize, usize)> {
        let n = self.config.ensemble;
        let (exists, symmetric) = (self.method.kernel().is_some(), self.method.kernel_is_symmetric());
        (0..n * n)
            .map(|at| (at / n, at % n))
            .filter(|(i, j)| exists && i != j && (i < j || !symmetric))
            .collect()
    }

    /// Multiplications and additions of one update phase.
    pub fn update_flops(&self) -> f64 {
        let (config, shape) = (&self.config, &self.ensemble.policies.shape);
        let samples = config.steps as f64 * config.ppo.epochs as f64 * config.ensemble as f64;
        samples * (shape.forward_flops() + shape.backward_flops()) + self.critics.flops(config.steps, config.ppo.epochs)
    }

    /// Multiplications and additions of one ratio phase; 0 where the method has none.
    pub fn ratio_flops(&self) -> f64 {
        self.method.ratio_flops()
    }

    /// All state as a checkpoint.
    pub fn checkpoint(&self) -> Checkpoint {
        let mut checkpoint = Checkpoint::new(self.iteration, self.config.to_toml());
        self.ensemble.save(&mut checkpoint);
        self.critics.save(&mut checkpoint);
        self.workers.iter().for_each(|worker| worker.save(&mut checkpoint));
        for (i, scaler) in self.scalers.iter().enumerate() {
            scaler.save(i, &mut checkpoint);
        }
        self.method.save(&mut checkpoint);
        checkpoint
    }

    /// Takes all state from a checkpoint of the same settings.
    pub fn restore(&mut self, mut checkpoint: Checkpoint) -> Result<()> {
        self.ensemble.restore(&mut checkpoint)?;
        self.critics.restore(&mut checkpoint)?;
        for worker in &mut self.workers {
            worker.restore(&mut checkpoint)?;
        }
        for (i, scaler) in self.scalers.iter_mut().enumerate() {
            scaler.restore(i, &mut checkpoint)?;
        }
        self.method.restore(&mut checkpoint)?;
        self.iteration = checkpoint.header.iteration;
        Ok(())
    }
}

/// The metrics of every method, in their order.
pub const METRICS: [Metric; 17] = [
    Metric::new("return_mean", "rollout", "mean, maximum and minimum of the `return_i`"),
    Metric::new("return_best", "rollout", "mean, maximum and minimum of the `return_i`"),
    Metric::new("return_worst", "rollout", "mean, maximum and minimum of the `return_i`"),
    Metric::new(
        "episodes",
        "rollout",
        "number of episodes that ended, over all policies",
    ),
    Metric::new("episode_length", "rollout", "mean length of these episodes, in steps"),
    Metric::new("unstable", "rollout", "ended because the simulation became unstable"),
    Metric::new("entropy", "train", "the entropy of the squashed policy, in nats"),
    Metric::new("approximate_kl", "train", "a non-negative estimate of KL(π_old‖π)"),
    Metric::new("clip_fraction", "train", "fraction of samples with \\|ϱ - 1\\| > ε"),
    Metric::new(
        "gradient_norm",
        "train",
        "norm of the combined policy gradient before clipping",
    ),
    Metric::new(
        "steps_taken",
        "train",
        "fraction of the iteration's gradient steps that were taken",
    ),
    Metric::new("value_loss", "train", "of the task critics, in stds of their targets"),
    Metric::new("explained_variance", "train", "1 - Var(R - V)/Var(R) on the rollout"),
    Metric::new(
        "explained_variance_diversity",
        "diversity",
        "the same for the critics of all other rewards",
    ),
    Metric::new("diversity_size", "diversity", "weight times std of the advantages"),
    Metric::new(
        "learning_rate",
        "train",
        "the policies' learning rate in this iteration",
    ),
    Metric::new("env_steps", "time", "environment steps of all policies so far"),
];

/// Mean of what is there; NaN of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), x| (count + 1.0, sum + x));
    sum / count
}

struct Clock {
    start: Instant,
    last: Instant,
}

impl Clock {
    fn new() -> Self {
        let now = Instant::now();
        Clock { start: now, last: now }
    }
    fn lap(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.last, Instant::now());
        (self.last - before).as_secs_f64()
    }
    fn total(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}

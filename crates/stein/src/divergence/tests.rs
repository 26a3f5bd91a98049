//! All divergences against the formulas of Table 1, numerical derivatives and closed forms.

use std::f64::consts::{LN_2, PI};

use rand::RngExt;

use super::*;
use crate::rng::{Purpose, Stream, stream};

fn all() -> Vec<&'static dyn Divergence> {
    DIVERGENCES.to_vec()
}

fn by_name(name: &str) -> &'static dyn Divergence {
    DivergenceChoice::named(name).unwrap().get()
}

/// A divergence without its closed forms: the trait's defaults from f and f'.
struct Plain<'a>(&'a dyn Divergence);

impl Divergence for Plain<'_> {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn f(&self, u: f64) -> f64 {
        self.0.f(u)
    }
    fn derivative(&self, u: f64) -> f64 {
        self.0.derivative(u)
    }
    fn symmetric(&self) -> bool {
        self.0.symmetric()
    }
    fn positive_definite(&self) -> bool {
        self.0.positive_definite()
    }
    fn temperature(&self) -> f64 {
        self.0.temperature()
    }
}

/// The column "Formula" of Table 1 at one point: the integrand of D(p‖q).
fn integrand(name: &str, p: f64, q: f64) -> f64 {
    match name {
        "js" => 0.5 * p * (2.0 * p / (p + q)).ln() + 0.5 * q * (2.0 * q / (p + q)).ln(),
        "kls" => p * (p / q).ln() + q * (q / p).ln(),
        "kl" => p * (p / q).ln(),
        "rkl" => q * (q / p).ln(),
        "hellinger" => (p.sqrt() - q.sqrt()).powi(2),
        "triangular" => (p - q).powi(2) / (p + q),
        "tv" => 0.5 * (p - q).abs(),
        other => panic!("no formula for {other}"),
    }
}

fn direct(name: &str, p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| integrand(name, *p, *q)).sum()
}

/// D_ij from [`value`] with every outcome as a sample weighted by its probability, times `scale`.
fn through_zeta(divergence: &dyn Divergence, rho_j: &[f64], rho_i: &[f64], scale: f32) -> f64 {
    let log_zeta: Vec<f32> = rho_j.iter().zip(rho_i).map(|(j, i)| (j / i).ln() as f32).collect();
    let weights = |rho: &[f64]| -> Vec<f32> { rho.iter().map(|p| *p as f32 * scale).collect() };
    value(
        divergence,
        LOG_CLAMP,
        (&log_zeta, &weights(rho_i)),
        (&log_zeta, &weights(rho_j)),
    )
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.iter().map(|x| x.exp() / total).collect()
}

/// Logits within ±1: the ratio of two such softmaxes stays within the clamp.
fn random_logits(random: &mut Stream, outcomes: usize) -> Vec<f64> {
    (0..outcomes).map(|_| 2.0 * random.random::<f64>() - 1.0).collect()
}

fn gaussian(x: f64, mean: f64, std: f64) -> f64 {
    (-0.5 * ((x - mean) / std).powi(2)).exp() / (std * (2.0 * PI).sqrt())
}

/// KL(N(m, s²) ‖ N(n, t²)).
fn gaussian_kl(m: f64, s: f64, n: f64, t: f64) -> f64 {
    (t / s).ln() + (s * s + (m - n).powi(2)) / (2.0 * t * t) - 0.5
}

#[test]
fn the_clamp_is_the_logarithm_of_20() {
    assert_eq!(LOG_CLAMP, 20f64.ln());
}

#[test]
fn names_lead_to_their_divergence_and_wrong_ones_to_the_list() {
    for name in DivergenceChoice::names() {
        assert_eq!(by_name(name).name(), name);
    }
    let sentence = DivergenceChoice::named("jsd").unwrap_err().to_string();
    assert!(sentence.contains("\"jsd\"") && sentence.contains("js, kls, kl, rkl, hellinger, triangular, tv"));
}

#[test]
fn generators_vanish_at_one_are_convex_and_have_their_derivative() {
    let grid: Vec<f64> = (-40..=40).map(|k| (0.1 * f64::from(k) + 0.013).exp()).collect();
    for divergence in all() {
        let (name, f) = (divergence.name(), |u| divergence.f(u));
        assert_eq!(f(1.0), 0.0, "{name}");
        for &u in &grid {
            let numerical = (f(u * (1.0 + 1e-6)) - f(u * (1.0 - 1e-6))) / (2e-6 * u);
            let error = (divergence.derivative(u) - numerical).abs();
            assert!(error < 1e-7 * (1.0 + numerical.abs()), "{name} at {u}: {error}");
            for &v in &grid {
                let above = 0.5 * (f(u) + f(v)) - f(0.5 * (u + v));
                assert!(above > -1e-12, "{name} between {u} and {v}: {above}");
            }
        }
    }
}

#[test]
fn closed_forms_agree_with_the_defaults_of_the_trait() {
    for divergence in all() {
        let plain = Plain(divergence);
        for k in -30..=30 {
            let log_zeta = 0.1 * f64::from(k);
            let (reward, by_default) = (divergence.reward(log_zeta.exp()), plain.reward(log_zeta.exp()));
            assert!(
                (reward - by_default).abs() < 1e-12,
                "{}: {reward} {by_default}",
                divergence.name()
            );
            // Two-sample formulas agree with pooled ones only in expectation: see the next test.
            if !["js", "kls"].contains(&divergence.name()) {
                let (own, pooled) = (divergence.per_sample(log_zeta), plain.per_sample(log_zeta));
                assert!(
                    (own.0 - pooled.0).abs() + (own.1 - pooled.1).abs() < 1e-14,
                    "{}",
                    divergence.name()
                );
            }
        }
    }
}

#[test]
fn values_from_zeta_are_the_integrals_of_table_1_on_discrete_distributions() {
    let mut random = stream(1, Purpose::Rollout, 0, 0);
    for trial in 0..100 {
        let outcomes = 2 + trial % 7;
        let rho_i = softmax(&random_logits(&mut random, outcomes));
        let rho_j = softmax(&random_logits(&mut random, outcomes));
        for divergence in all() {
            let name = divergence.name();
            let exact = direct(name, &rho_j, &rho_i);
            for scale in [1.0, 0.01, 30.0] {
                let found = through_zeta(divergence, &rho_j, &rho_i, scale);
                assert!((found - exact).abs() < 1e-6, "{name}: {found} {exact}");
            }
            let pooled = through_zeta(&Plain(divergence), &rho_j, &rho_i, 1.0);
            assert!((pooled - exact).abs() < 1e-6, "{name}, pooled: {pooled} {exact}");
            let backwards = direct(name, &rho_i, &rho_j);
            assert_eq!(divergence.symmetric(), (backwards - exact).abs() < 1e-12, "{name}");
        }
    }
}

#[test]
fn values_from_zeta_are_the_integrals_of_table_1_on_gaussians() {
    // Close enough for the clamp to matter only in the far tails.
    for ((mean_j, deviation_j), (mean_i, deviation_i)) in [
        ((0.3, 1.0), (0.0, 1.0)),
        ((0.0, 1.0), (0.2, 1.1)),
        ((-0.1, 0.97), (0.1, 1.0)),
    ] {
        let grid: Vec<f64> = (0..8000).map(|k| -10.0 + 0.0025 * (f64::from(k) + 0.5)).collect();
        let density = |mean, std| -> Vec<f64> { grid.iter().map(|&x| 0.0025 * gaussian(x, mean, std)).collect() };
        let (rho_j, rho_i) = (density(mean_j, deviation_j), density(mean_i, deviation_i));
        let forward = gaussian_kl(mean_j, deviation_j, mean_i, deviation_i);
        let reverse = gaussian_kl(mean_i, deviation_i, mean_j, deviation_j);
        for divergence in all() {
            let name = divergence.name();
            let found = through_zeta(divergence, &rho_j, &rho_i, 1.0);
            let exact = direct(name, &rho_j, &rho_i);
            assert!((found - exact).abs() < 1e-5, "{name}: {found} {exact}");
            let closed = match name {
                "kl" => forward,
                "rkl" => reverse,
                "kls" => forward + reverse,
                _ => continue,
            };
            assert!((found - closed).abs() < 1e-5, "{name}: {found}, closed form {closed}");
        }
    }
}

#[test]
fn all_but_disjoint_policies_reach_the_largest_value_that_the_clamp_allows() {
    let tiny = 1e-9;
    let (rho_i, rho_j) = ([1.0 - tiny, tiny], [tiny, 1.0 - tiny]);
    let ln_20 = 20f64.ln();
    for (name, clamped_value) in [
        ("js", LN_2 - (21.0f64 / 20.0).ln()),
        ("kls", 2.0 * ln_20),
        ("kl", 19.0 / 21.0 * ln_20),
        ("rkl", 19.0 / 21.0 * ln_20),
        ("hellinger", 2.0 - 4.0 * 20f64.sqrt() / 21.0),
        ("triangular", 2.0 * (19.0f64 / 21.0).powi(2)),
        ("tv", 19.0 / 21.0),
    ] {
        let found = through_zeta(by_name(name), &rho_j, &rho_i, 1.0);
        assert!((found - clamped_value).abs() < 1e-6, "{name}: {found} {clamped_value}");
    }
    // 93 % of log 2; samples of one policy alone would give half of it.
    let js = through_zeta(&JensenShannon, &rho_j, &rho_i, 1.0);
    assert!((0.92..0.94).contains(&(js / LN_2)));
}

#[test]
fn the_reward_is_the_gradient_of_the_divergence_in_the_policy_that_earns_it() {
    let mut random = stream(2, Purpose::Rollout, 0, 0);
    let outcomes = 6;
    for _ in 0..20 {
        let theta_i = random_logits(&mut random, outcomes);
        let rho_j = softmax(&random_logits(&mut random, outcomes));
        let rho_i = softmax(&theta_i);
        for divergence in all() {
            let name = divergence.name();
            for m in 0..outcomes {
                let moved = |by: f64| {
                    let mut theta = theta_i.clone();
                    theta[m] += by;
                    direct(name, &rho_j, &softmax(&theta))
                };
                let numerical = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                // ∂ρ(x)/∂θ_m = ρ(x)·([x = m] - ρ(m))
                let by_reward: f64 = (0..outcomes)
                    .map(|x| {
                        let derivative = rho_i[x] * (f64::from(u8::from(x == m)) - rho_i[m]);
                        derivative * divergence.reward(rho_j[x] / rho_i[x])
                    })
                    .sum();
                assert!((by_reward - numerical).abs() < 1e-8, "{name}: {by_reward} {numerical}");
            }
        }
    }
}

/// The reward of a single step, with the default clamp.
fn shifted_reward(divergence: &dyn Divergence, shift: Shift, log_zeta: f32) -> f32 {
    rewards(divergence, shift, LOG_CLAMP, &[log_zeta], &[1.0])[0]
}

#[test]
fn shifts_put_zero_where_they_say_and_change_nothing_else() {
    let reward = |divergence: &dyn Divergence, shift, log_zeta: f64| shifted_reward(divergence, shift, log_zeta as f32);
    for divergence in all() {
        let (divergence, name) = (divergence, divergence.name());
        assert_eq!(reward(divergence, Shift::AtOne, 0.0), 0.0, "{name}");
        assert_eq!(reward(divergence, Shift::NonNegative, 100.0), 0.0, "{name}");
        assert_eq!(
            reward(divergence, Shift::None, 0.7),
            divergence.reward(f64::from(0.7f32).exp()) as f32,
            "{name}"
        );
        let mut last = f32::INFINITY;
        for k in -40..=40 {
            let log_zeta = 0.1 * f64::from(k);
            let none = reward(divergence, Shift::None, log_zeta);
            let at_one = reward(divergence, Shift::AtOne, log_zeta);
            let non_negative = reward(divergence, Shift::NonNegative, log_zeta);
            assert!(non_negative >= 0.0, "{name}");
            assert!((none - at_one - divergence.reward(1.0) as f32).abs() < 1e-5, "{name}");
            assert!(
                (none - non_negative - divergence.reward(20.0) as f32).abs() < 1e-5,
                "{name}"
            );
            assert!(none <= last, "{name}: the reward rises with ζ");
            last = none;
        }
    }
    // The bonus of a step that both policies take equally often.
    let bonus = |divergence: &dyn Divergence| reward(divergence, Shift::NonNegative, 0.0);
    assert!((bonus(&JensenShannon) - 0.5 * 10.5f32.ln()).abs() < 1e-6);
    assert!((bonus(&SymmetricKl) - (19.0 + 20f32.ln())).abs() < 1e-5);
}

#[test]
fn centred_rewards_have_the_weighted_mean_zero_and_the_same_differences() {
    let (log_zetas, weights) = ([-1.0f32, 0.3, 2.0], [1.0f32, 0.5, 0.1]);
    for divergence in all() {
        let (divergence, name) = (divergence, divergence.name());
        let of = |shift| rewards(divergence, shift, LOG_CLAMP, &log_zetas, &weights);
        let (plain, centred) = (of(Shift::None), of(Shift::Centred));
        let mean: f32 = centred.iter().zip(&weights).map(|(r, w)| r * w).sum();
        assert!(mean.abs() < 1e-5, "{name}: {mean}");
        for (plain, centred) in plain.windows(2).zip(centred.windows(2)) {
            assert!(
                ((plain[1] - plain[0]) - (centred[1] - centred[0])).abs() < 1e-4,
                "{name}"
            );
        }
    }
}

#[test]
fn a_wider_clamp_lets_larger_ratios_through() {
    let far = [5.0f32];
    for divergence in all() {
        let (divergence, name) = (divergence, divergence.name());
        let value = |bound| value(divergence, bound, (&far, &[1.0]), (&[0.0], &[1.0]));
        let at_bound = [LOG_CLAMP as f32];
        let cut = super::value(divergence, 100.0, (&at_bound, &[1.0]), (&[0.0], &[1.0]));
        assert!((value(LOG_CLAMP) - cut).abs() < 1e-5, "{name}");
        assert!((value(100.0) - value(LOG_CLAMP)).abs() > 1e-6, "{name}");
    }
}

#[test]
fn shifts_have_their_names_in_settings() {
    for (shift, name) in [
        (Shift::Centred, "centred"),
        (Shift::None, "none"),
        (Shift::AtOne, "one"),
        (Shift::NonNegative, "positive"),
    ] {
        assert_eq!(serde_json::to_value(shift).unwrap(), name);
        assert_eq!(serde_json::from_value::<Shift>(name.into()).unwrap(), shift);
    }
}

#[test]
fn extreme_ratios_give_the_value_at_the_clamp_never_nan() {
    for divergence in all() {
        let (divergence, name) = (divergence, divergence.name());
        let plain = Plain(divergence);
        for side in [-1.0f32, 1.0] {
            let bound = side * LOG_CLAMP as f32;
            for log_zeta in [side * 10.0, side * 200.0, side * f32::MAX, side * f32::INFINITY] {
                for shift in [Shift::None, Shift::AtOne, Shift::NonNegative] {
                    let (found, at_bound) = (
                        shifted_reward(divergence, shift, log_zeta),
                        shifted_reward(divergence, shift, bound),
                    );
                    assert!((found - at_bound).abs() < 1e-4, "{name}: {found} {at_bound}");
                }
                for divergence in [divergence, &plain] {
                    let at = |log_zeta| value(divergence, LOG_CLAMP, (&[log_zeta], &[1.0]), (&[log_zeta], &[1.0]));
                    assert!((at(log_zeta) - at(bound)).abs() < 1e-5, "{name}");
                }
                // Without the clamp, closed forms may be infinite but never NaN.
                let (on_i, on_j) = divergence.per_sample(f64::from(side) * 1e30);
                assert!(!on_i.is_nan() && !on_j.is_nan(), "{name}");
            }
        }
        assert!(
            shifted_reward(divergence, Shift::AtOne, f32::NAN).is_nan(),
            "{name} hides a NaN"
        );
        assert!(
            value(divergence, LOG_CLAMP, (&[f32::NAN], &[1.0]), (&[0.0], &[1.0])).is_nan(),
            "{name} hides a NaN"
        );
    }
}

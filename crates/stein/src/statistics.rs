//! Statistics over seeds.
//!
//! ```text
//! fewer than ten seeds   mean ± t·s/√K                          Student's t with K - 1 degrees of freedom
//! ten and more           interquartile mean, bootstrap 95 %     the mean without the ⌊K/4⌋ smallest and largest values
//! improvement            P(X > Y) = mean over pairs of [x > y] + ½·[x = y]
//! ```
//!
//! The bootstrap is stratified: each sample is resampled separately, with replacement; the interval is from the 2.5 %
//! to the 97.5 % quantile of the statistic over the resamples. Reference: Agarwal et al. 2021, "Deep reinforcement
//! learning at the edge of the statistical precipice" (the Python package `rliable`).

use rand::RngExt;

use crate::rng::{Purpose, stream};

/// Resamples of a bootstrap.
pub const DRAWS: usize = 10_000;

/// From this many seeds on, the interquartile mean replaces the mean.
pub const MANY: usize = 10;

/// One number for several seeds, with its 95 % interval if there is more than one seed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The mean, or the interquartile mean from [`MANY`] seeds on.
    pub centre: f64,
    /// The ends of the interval.
    pub interval: Option<[f64; 2]>,
}

/// The summary of several seeds; NaN if one of them is NaN.
pub fn summary(values: &[f64]) -> Summary {
    if values.len() >= MANY && values.iter().all(|value| !value.is_nan()) {
        let of_all = |samples: &[Vec<f64>]| interquartile_mean(&samples[0]);
        return Summary {
            centre: interquartile_mean(values),
            interval: Some(bootstrap(&[values], of_all, DRAWS)),
        };
    }
    let (centre, half) = student(values);
    Summary {
        centre,
        interval: half.map(|half| [centre - half, centre + half]),
    }
}

/// The mean, and half the width of its 95 % interval if there is more than one value.
pub fn student(values: &[f64]) -> (f64, Option<f64>) {
    /// The 97.5 % quantile of Student's distribution for 1, 2, … degrees of freedom.
    const STUDENT: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    // Beyond the table, the last quantile is used: slightly too wide, never too narrow.
    let student = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
    (mean, Some(student * (variance / count).sqrt()))
}

/// The mean without the ⌊K/4⌋ smallest and the ⌊K/4⌋ largest of K values.
pub fn interquartile_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// The probability that a run of `x` is better than one of `y`; a tie counts one half.
pub fn probability_of_improvement(x: &[f64], y: &[f64]) -> f64 {
    let wins = x.iter().flat_map(|a| {
        y.iter().map(move |b| match a.total_cmp(b) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
    });
    wins.sum::<f64>() / (x.len() * y.len()) as f64
}

/// [`probability_of_improvement`] with its 95 % interval.
pub fn improvement(x: &[f64], y: &[f64]) -> Summary {
    let of_two = |samples: &[Vec<f64>]| probability_of_improvement(&samples[0], &samples[1]);
    Summary {
        centre: probability_of_improvement(x, y),
        interval: Some(bootstrap(&[x, y], of_two, DRAWS)),
    }
}

/// The 95 % interval of a statistic of several samples, each resampled separately, `draws` times, with a fixed random
/// seed.
pub fn bootstrap(samples: &[&[f64]], statistic: impl Fn(&[Vec<f64>]) -> f64, draws: usize) -> [f64; 2] {
    let mut random = stream(0, Purpose::Bootstrap, 0, 0);
    let mut drawn: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    let mut values: Vec<f64> = (0..draws)
        .map(|_| {
            for (drawn, sample) in drawn.iter_mut().zip(samples) {
                for value in drawn.iter_mut() {
                    *value = sample[random.random_range(0..sample.len())];
                }
            }
            statistic(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    [0.025, 0.975].map(|share| quantile(&values, share))
}

/// A quantile of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: [f64; 10] = [3557., 3334., 2784., 3120., 4012., 2650., 3890., 3301., 2988., 3475.];
    const Y: [f64; 10] = [3183., 3192., 3025., 2810., 3278., 2730., 3333., 2900., 3100., 2700.];

    #[test]
    fn few_seeds_have_the_interval_of_student() {
        assert_eq!(student(&[3.0]), (3.0, None));
        let (mean, half) = student(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        // s = √2.5, t = 2.776 with four degrees of freedom.
        assert!((mean - 3.0).abs() < 1e-12 && (half.unwrap() - 2.776 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(student(&[0.5; 100]), (0.5, Some(0.0)));
        assert!(student(&[f64::NAN, 1.0]).0.is_nan());
        assert_eq!(summary(&[2.0]).interval, None);
        assert_eq!(summary(&[1.0, 2.0, 3.0, 4.0, 5.0]).centre, 3.0);
    }

    /// Recorded from rliable 1.2.0 (`get_interval_estimates` with `aggregate_iqm` and `probability_of_improvement`, 20,000
    /// draws) and scipy 1.17.1 (`bootstrap` of `trim_mean`, percentile method), which differ from each other by 7.
    #[test]
    fn many_seeds_have_the_interval_of_rliable_and_scipy() {
        let near = |seen: [f64; 2], expected: [f64; 2], bound: f64| {
            for (seen, expected) in seen.into_iter().zip(expected) {
                assert!((seen - expected).abs() < bound, "{seen} instead of {expected}");
            }
        };
        let seen = summary(&X);
        assert!((seen.centre - 3_295.833_333_333_333).abs() < 1e-9);
        near(seen.interval.unwrap(), [2_999.7, 3_633.8], 12.0);
        let seen = summary(&Y);
        assert!((seen.centre - 3_035.0).abs() < 1e-9);
        near(seen.interval.unwrap(), [2_846.7, 3_197.7], 12.0);
        let seen = improvement(&X, &Y);
        assert!((seen.centre - 0.71).abs() < 1e-12);
        near(seen.interval.unwrap(), [0.45, 0.93], 0.011);
        // Two tasks: runs are resampled within each.
        let of_both = |samples: &[Vec<f64>]| interquartile_mean(&samples.concat());
        near(bootstrap(&[&X, &Y], of_both, DRAWS), [2_966.8, 3_282.2], 12.0);
        assert!((of_both(&[X.to_vec(), Y.to_vec()]) - 3_142.0).abs() < 1e-9);
    }

    #[test]
    fn ties_count_one_half_and_a_case_is_never_better_than_itself() {
        assert_eq!(probability_of_improvement(&[1.0, 2.0], &[2.0, 3.0]), 0.125);
        assert_eq!(probability_of_improvement(&X, &X), 0.5);
        assert_eq!(improvement(&[2.0; 10], &[1.0; 10]).interval, Some([1.0, 1.0]));
        assert!(summary(&[f64::NAN; 12]).centre.is_nan());
    }

    #[test]
    fn the_same_values_have_the_same_interval() {
        assert_eq!(summary(&X), summary(&X));
    }
}

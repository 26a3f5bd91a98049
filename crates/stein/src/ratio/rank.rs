//! Spearman's rank correlation: whether two lists of numbers have the same order.

/// Spearman's rank correlation; equal values share the mean of their ranks. NaN where a side is constant.
pub fn rank_correlation(x: &[f64], y: &[f64]) -> f64 {
    let (x, y) = (ranks(x), ranks(y));
    let middle = (x.len() as f64 - 1.0) / 2.0;
    let moment = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum() };
    moment(&x, &y) / (moment(&x, &x) * moment(&y, &y)).sqrt()
}

/// The same under a distribution that gives each sample its weight: a sample of weight 2 counts as two of weight 1.
pub fn weighted_rank_correlation(x: &[f64], y: &[f64], weights: &[f64]) -> f64 {
    let (x, y) = (weighted_ranks(x, weights), weighted_ranks(y, weights));
    let total: f64 = weights.iter().sum();
    // The mean of such ranks is half the weight, ties or not.
    let moment = |x: &[f64], y: &[f64]| -> f64 {
        let each = x.iter().zip(y).zip(weights);
        each.map(|((x, y), w)| w * (x - total / 2.0) * (y - total / 2.0)).sum()
    };
    moment(&x, &y) / (moment(&x, &x) * moment(&y, &y)).sqrt()
}

/// The weight of what is smaller, and half the weight of what is equal.
fn weighted_ranks(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let (mut first, mut below) = (0, 0.0);
    while first < order.len() {
        let equal = |at: &&usize| values[**at] == values[order[first]];
        let same = order[first..].iter().take_while(equal).count().max(1);
        let group = &order[first..first + same];
        let weight: f64 = group.iter().map(|&at| weights[at]).sum();
        for &at in group {
            ranks[at] = below + weight / 2.0;
        }
        below += weight;
        first += same;
    }
    ranks
}

/// Ranks from 0 on.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut ranks = weighted_ranks(values, &vec![1.0; values.len()]);
    ranks.iter_mut().for_each(|rank| *rank -= 0.5);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties_and_correlations_are_by_hand() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, -2.0]), [2.5, 1.0, 2.5, 0.0]);
        assert!((rank_correlation(&[1.0, 2.0, 30.0], &[-1.0, 0.0, 1.0]) - 1.0).abs() < 1e-15);
        assert!((rank_correlation(&[1.0, 2.0, 30.0], &[3.0, 0.0, -1.0]) + 1.0).abs() < 1e-15);
        // Σd² = 1 + 1 of three ranks: 1 - 6·2/(3·8).
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[2.0, 1.0, 3.0]) - 0.5).abs() < 1e-15);
        assert!(rank_correlation(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert_eq!(ranks(&[f64::NAN, 1.0]), [1.0, 0.0]);
    }

    #[test]
    fn a_weight_is_a_number_of_samples() {
        let (x, y) = ([3.0, 1.0, 3.0, -2.0, 0.5], [1.0, 1.5, -1.0, -2.0, 1.5]);
        let plain = rank_correlation(&x, &y);
        assert!((weighted_rank_correlation(&x, &y, &[0.2; 5]) - plain).abs() < 1e-12);
        // The first one twice and the fourth not at all.
        let repeated = rank_correlation(&[3.0, 3.0, 1.0, 3.0, 0.5], &[1.0, 1.0, 1.5, -1.0, 1.5]);
        let weighted = weighted_rank_correlation(&x, &y, &[2.0, 1.0, 1.0, 0.0, 1.0]);
        assert!((weighted - repeated).abs() < 1e-12, "{weighted} {repeated}");
        assert!((repeated - plain).abs() > 0.1);
        assert!(weighted_rank_correlation(&[1.0, 1.0], &[1.0, 2.0], &[1.0, 3.0]).is_nan());
    }
}

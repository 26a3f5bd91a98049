//! Running mean and variance of the inputs of a network.
//!
//! ```text
//! x̂ = clip((x - mean)/√(variance + 1e-8), ±10)
//! ```
//! Batches are merged by the exact parallel formula (Chan, Golub & LeVeque 1979), so that the result does not depend on
//! how the data were cut up, up to rounding.

/// Statistics of vectors of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalizer {
    /// Number of vectors seen.
    pub count: f64,
    /// Their mean.
    pub mean: Vec<f64>,
    /// Sum of squared stds from the mean.
    pub squares: Vec<f64>,
    clip: f64,
    /// (mean, 1/standard std) as they are applied: refreshed by [`Normalizer::update`].
    applied: Vec<(f32, f32)>,
}

impl Normalizer {
    /// Nothing seen yet: the identity, but for the clip.
    pub fn new(width: usize, clip: f64) -> Self {
        Normalizer {
            count: 0.0,
            mean: vec![0.0; width],
            squares: vec![0.0; width],
            clip,
            applied: vec![(0.0, 1.0); width],
        }
    }

    /// Takes saved statistics of the same width.
    pub fn restore(&mut self, count: f64, mean: Vec<f64>, squares: Vec<f64>) {
        (self.count, self.mean, self.squares) = (count, mean, squares);
        self.applied.fill((0.0, 1.0));
        self.refresh();
    }

    /// Adds the vectors of a sample-major matrix.
    pub fn update(&mut self, samples: &[f32]) {
        let width = self.mean.len();
        let added = (samples.len() / width) as f64;
        if added == 0.0 {
            return;
        }
        for feature in 0..width {
            let column = || samples.iter().skip(feature).step_by(width).map(|&x| f64::from(x));
            let mean = column().sum::<f64>() / added;
            let squares: f64 = column().map(|x| (x - mean) * (x - mean)).sum();
            let delta = mean - self.mean[feature];
            let total = self.count + added;
            self.mean[feature] += delta * added / total;
            self.squares[feature] += squares + delta * delta * self.count * added / total;
        }
        self.count += added;
        self.refresh();
    }

    /// The statistics of the same vectors with independent noise of this variance added to each entry.
    pub fn with_noise(&self, variance: f64) -> Self {
        let squares = self.squares.iter().map(|s| s + variance * self.count).collect();
        let mut wider = self.clone();
        wider.restore(self.count, self.mean.clone(), squares);
        wider
    }

    fn refresh(&mut self) {
        if self.count == 0.0 {
            return;
        }
        for ((applied, mean), squares) in self.applied.iter_mut().zip(&self.mean).zip(&self.squares) {
            let variance = squares / self.count;
            *applied = (*mean as f32, (1.0 / (variance + 1e-8).sqrt()) as f32);
        }
    }

    /// Normalises one vector.
    pub fn apply(&self, input: &[f32], output: &mut [f32]) {
        let clip = self.clip as f32;
        for ((output, &x), &(mean, scale)) in output.iter_mut().zip(input).zip(&self.applied) {
            *output = ((x - mean) * scale).clamp(-clip, clip);
        }
    }

    /// Normalises the vectors of a sample-major matrix where they are.
    pub fn apply_in_place(&self, samples: &mut [f32]) {
        let clip = self.clip as f32;
        for sample in samples.chunks_exact_mut(self.mean.len()) {
            for (x, &(mean, scale)) in sample.iter_mut().zip(&self.applied) {
                *x = ((*x - mean) * scale).clamp(-clip, clip);
            }
        }
    }

    /// Normalises the vectors of a sample-major matrix.
    pub fn apply_all(&self, input: &[f32], output: &mut [f32]) {
        let width = self.mean.len();
        for (input, output) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            self.apply(input, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::test::random_vector;

    #[test]
    fn pieces_give_the_statistics_of_the_whole() {
        let samples: Vec<f32> = random_vector(3, 300, 5.0).iter().map(|&x| x as f32 + 100.0).collect();
        let mut pieces = Normalizer::new(3, 10.0);
        for piece in [&samples[..6], &samples[6..99], &samples[99..], &[]] {
            pieces.update(piece);
        }
        let mut whole = Normalizer::new(3, 10.0);
        whole.update(&samples);
        assert_eq!(pieces.count, 100.0);
        for feature in 0..3 {
            assert!((pieces.mean[feature] - whole.mean[feature]).abs() < 1e-9);
            assert!((pieces.squares[feature] - whole.squares[feature]).abs() < 1e-6);
        }
        let mut out = vec![0.0; 300];
        whole.apply_all(&samples, &mut out);
        for feature in 0..3 {
            let column: Vec<f32> = out.iter().skip(feature).step_by(3).copied().collect();
            let mean = column.iter().sum::<f32>() / 100.0;
            let variance = column.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 100.0;
            assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
        }
    }

    #[test]
    fn clips_and_survives_constant_features_and_restores() {
        let mut normalizer = Normalizer::new(2, 10.0);
        let mut out = [0.0; 2];
        normalizer.apply(&[3.0, -50.0], &mut out);
        assert_eq!(out, [3.0, -10.0]);
        normalizer.update(&[1.0, 2.0, 1.0, 4.0]);
        normalizer.apply(&[1.0, 1e9], &mut out);
        assert_eq!(out, [0.0, 10.0]);
        let mut again = Normalizer::new(2, 10.0);
        again.restore(normalizer.count, normalizer.mean.clone(), normalizer.squares.clone());
        assert_eq!(again, normalizer);
    }

    #[test]
    fn noise_widens_the_statistics() {
        let mut normalizer = Normalizer::new(1, 10.0);
        normalizer.update(&[1.0, 3.0]);
        let mut seen = [2.0f32, 4.0];
        normalizer.with_noise(3.0).apply_in_place(&mut seen);
        assert!(seen[0].abs() < 1e-6 && (seen[1] - 1.0).abs() < 1e-6, "{seen:?}");
    }
}

//! Numbers that networks compute with: `f32` in training, `f64` where gradients are checked.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use super::product::{self, Product};

/// A floating-point number with the few slice operations that networks are made of.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// Rounds from `f64`.
    fn from_f64(value: f64) -> Self;
    /// Widens to `f64`.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Natural exponential.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;

    /// Matrix product: see [`Product`].
    fn product(product: Product<'_, Self>, c: &mut [Self]);

    /// `row[b] = tanh(row[b] + bias)`.
    fn tanh_bias(row: &mut [Self], bias: Self);
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn sqrt(self) -> f32 {
        self.sqrt()
    }
    fn exp(self) -> f32 {
        self.exp()
    }
    fn ln(self) -> f32 {
        self.ln()
    }
    fn product(product: Product<'_, f32>, c: &mut [f32]) {
        product::simd(product, c);
    }
    fn tanh_bias(row: &mut [f32], bias: f32) {
        dispatch(
            #[inline(always)]
            || {
                for value in row.iter_mut() {
                    *value = rational_tanh(*value + bias);
                }
            },
        );
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn from_f64(value: f64) -> f64 {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn sqrt(self) -> f64 {
        self.sqrt()
    }
    fn exp(self) -> f64 {
        self.exp()
    }
    fn ln(self) -> f64 {
        self.ln()
    }
    fn product(product: Product<'_, f64>, c: &mut [f64]) {
        product::plain(product, c);
    }
    fn tanh_bias(row: &mut [f64], bias: f64) {
        for value in row {
            *value = (*value + bias).tanh();
        }
    }
}

/// Runs `operation` compiled for the widest vectors of this processor.
#[inline(always)]
pub fn dispatch<R>(operation: impl FnOnce() -> R) -> R {
    struct Operation<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Operation<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, simd: S) -> R {
            simd.vectorize(
                #[inline(always)]
                || (self.0)(),
            )
        }
    }
    pulp::Arch::new().dispatch(Operation(operation))
}

/// tanh as an odd rational function x·P(x²)/Q(x²) of degree 13/6, clamped where tanh rounds to ±1; absolute error below
/// 4e-7 (tested over the whole range). Only multiplications, additions and one division, so that it vectorises.
#[inline(always)]
pub fn rational_tanh(x: f32) -> f32 {
    const P: [f32; 7] = [
        4.893_524_6e-3,
        6.372_619_3e-4,
        1.485_722_4e-5,
        5.122_297e-8,
        -8.604_672e-11,
        2.000_188e-13,
        -2.760_768_5e-16,
    ];
    const Q: [f32; 4] = [4.893_525e-3, 2.268_434_6e-3, 1.185_347e-4, 1.198_258_4e-6];
    let x = x.clamp(-7.905_31, 7.905_31);
    let y = x * x;
    let mut p = P[6];
    for index in (0..6).rev() {
        p = p.mul_add(y, P[index]);
    }
    let mut q = Q[3];
    for index in (0..3).rev() {
        q = q.mul_add(y, Q[index]);
    }
    x * p / q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rational_tanh_is_within_4e_7_everywhere() {
        let mut worst = 0.0f64;
        for step in -1_000_000..=1_000_000 {
            let x = step as f32 * 1e-5;
            worst = worst.max((f64::from(rational_tanh(x)) - f64::from(x).tanh()).abs());
        }
        for x in [f32::MIN, -100.0, 100.0, f32::MAX, f32::INFINITY] {
            worst = worst.max((f64::from(rational_tanh(x)) - f64::from(x).tanh()).abs());
        }
        assert!(worst < 4e-7, "error {worst}");
        assert!(rational_tanh(f32::NAN).is_nan());
    }
}

//! What the tests of the DICE losses share: every derivative against central differences of the objective.

use super::{DiceLoss, Outputs};
use crate::nn::test::random_vector;

/// Whether the networks descend (1) or ascend (-1) the objective that `derivatives` returns.
pub struct Sign {
    pub value: f64,
    pub zeta: f64,
}

/// The value-like network descends; `zeta` says what the ζ-like one does.
pub fn check_derivatives(loss: &impl DiceLoss, zeta: f64) {
    check_derivatives_signed(loss, Sign { value: 1.0, zeta });
}

/// Checks every derivative of a loss against central differences of its objective.
pub fn check_derivatives_signed<L: DiceLoss>(loss: &L, sign: Sign) {
    const B: usize = 7;
    const F: usize = 4;
    // now, next, z: B each; first: F; u: 1.
    let at: Vec<f32> = random_vector(41, 3 * B + F + 1, 0.8)
        .iter()
        .map(|&x| x as f32)
        .collect();
    let weights: Vec<f32> = random_vector(42, B + F, 0.5).iter().map(|&x| 1.0 + x as f32).collect();
    let run = |at: &[f32]| {
        let (mut d_now, mut d_next, mut d_z, mut d_first, mut d_u) = ([0.0; B], [0.0; B], [0.0; B], [0.0; F], 0.0);
        let objective = loss.derivatives(&mut Outputs {
            gamma: 0.9,
            mass: 0.8,
            lambda: 2.0,
            u: at[3 * B + F],
            weights: &weights[..B],
            now: &at[..B],
            next: &at[B..2 * B],
            z: if L::HAS_ZETA { &at[2 * B..3 * B] } else { &[] },
            first_weights: &weights[B..],
            first: &at[3 * B..3 * B + F],
            d_now: &mut d_now,
            d_next: &mut d_next,
            d_z: if L::HAS_ZETA { &mut d_z } else { &mut [] },
            d_first: &mut d_first,
            d_u: &mut d_u,
        });
        let mut derivatives = Vec::new();
        derivatives.extend(d_now.iter().chain(&d_next).map(|&d| sign.value * f64::from(d)));
        derivatives.extend(d_z.iter().map(|&d| sign.zeta * f64::from(d)));
        derivatives.extend(d_first.iter().map(|&d| sign.value * f64::from(d)));
        derivatives.push(sign.value * f64::from(d_u));
        (objective, derivatives)
    };
    let (_, derivatives) = run(&at);
    assert!(derivatives.iter().any(|&derivative| derivative.abs() > 0.01));
    for (index, derivative) in derivatives.iter().enumerate() {
        let mut moved = at.clone();
        let h = 1e-2;
        moved[index] = at[index] + h;
        let above = run(&moved).0;
        moved[index] = at[index] - h;
        let below = run(&moved).0;
        let numeric = (above - below) / (2.0 * f64::from(h));
        assert!(
            (numeric - derivative).abs() < 3e-4 * (1.0 + numeric.abs()),
            "{index}: {numeric} {derivative}"
        );
    }
}

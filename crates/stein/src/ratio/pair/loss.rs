//! A DICE loss as a pure function of the networks' outputs: outputs in, objective and derivatives out.

/// Outputs of the networks on one minibatch, and the derivatives of the loss in them.
pub struct Outputs<'a> {
    /// Discount γ.
    pub gamma: f32,
    /// Mass m_a of the numerator policy's occupancy.
    pub mass: f32,
    /// λ of GenDICE's constraint.
    pub lambda: f32,
    /// The extra scalar u of the value-like network.
    pub u: f32,
    /// Weights of the transitions, of mean about 1.
    pub weights: &'a [f32],
    /// v(s,a).
    pub now: &'a [f32],
    /// v_next, 0 after termination.
    pub next: &'a [f32],
    /// z(s,a); empty for estimators without a ζ network.
    pub z: &'a [f32],
    /// Weights of the initial states.
    pub first_weights: &'a [f32],
    /// v(s0,a0).
    pub first: &'a [f32],
    /// d(loss)/d(now).
    pub d_now: &'a mut [f32],
    /// d(loss)/d(next).
    pub d_next: &'a mut [f32],
    /// d(loss)/d(z), of the loss that the ζ network descends.
    pub d_z: &'a mut [f32],
    /// d(loss)/d(first).
    pub d_first: &'a mut [f32],
    /// d(loss)/d(u).
    pub d_u: &'a mut f32,
}

/// One of the DICE losses. The value-like network descends d_now, d_next, d_first, d_u; the ζ-like network d_z.
pub trait DiceLoss: Send + Sync + 'static {
    /// Whether there is a ζ-like network.
    const HAS_ZETA: bool;

    /// Whether the ζ-like network is read from an exponential average of its weights.
    const AVERAGED: bool;

    /// Whether the value-like network takes the gradient penalty.
    const PENALISED: bool;

    /// Fills in the derivatives and returns the value of the objective.
    fn derivatives(&self, outputs: &mut Outputs<'_>) -> f64;

    /// log ζ (up to a constant) from the outputs on one transition; `next` is v_next.
    fn log_zeta(&self, now: f32, next: f32, z: f32, gamma: f32) -> f32;
}

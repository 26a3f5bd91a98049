//! The arm once more, by homogeneous transforms from the numbers of the URDF: what the model is tested against, and
//! what the controller of the tests thinks with.

use std::f64::consts::FRAC_PI_2;

use super::JOINTS;

/// Origin xyz, rpy, range, torque, damping and friction of a joint.
pub struct Joint {
    pub xyz: [f64; 3],
    pub rpy: [f64; 3],
    pub range: [f64; 2],
    pub torque: f64,
    pub damping: f64,
    pub friction: f64,
}

const fn joint(xyz: [f64; 3], rpy: [f64; 3], range: [f64; 2], [torque, damping, friction]: [f64; 3]) -> Joint {
    Joint {
        xyz,
        rpy,
        range,
        torque,
        damping,
        friction,
    }
}

const R: f64 = FRAC_PI_2;

// The URDF rounds its half turn.
#[allow(clippy::approx_constant)]
#[rustfmt::skip]
pub const TABLE: [Joint; JOINTS] = [
    joint([0.0, 0.0, 0.08], [0.0, 0.0, 0.0], [-3.0503, 3.0503], [80.0, 15.0, 5.0]),
    joint([0.081, 0.05, 0.237], [-R, R, 0.0], [-3.8095, 2.2736], [80.0, 5.0, 2.0]),
    joint([0.0, -0.14, 0.1425], [R, 0.0, 0.0], [-3.0426, 3.0426], [40.0, 5.0, 2.0]),
    joint([0.0, -0.042, 0.26], [-R, 0.0, 0.0], [-3.0439, 3.0439], [40.0, 15.0, 5.0]),
    joint([0.0, -0.125, -0.1265], [R, 0.0, 0.0], [-2.9761, 2.9761], [9.0, 6.0, 1.0]),
    joint([0.0, 0.031, 0.275], [-R, 0.0, 0.0], [-2.9761, 2.9761], [9.0, 5.5, 1.2]),
    joint([0.0, -0.11, 0.1053], [-R, -0.17453, 3.1416], [-4.7124, 4.7124], [9.0, 1.0, 0.5]),
];

/// A homogeneous transform: rotation in its first three columns, translation in the last.
pub type Transform = [[f64; 4]; 3];

fn product(a: &Transform, b: &Transform) -> Transform {
    let entry = |row: usize, column: usize| {
        let carried = if column == 3 { a[row][3] } else { 0.0 };
        carried + (0..3).map(|k| a[row][k] * b[k][column]).sum::<f64>()
    };
    std::array::from_fn(|row| std::array::from_fn(|column| entry(row, column)))
}

/// A shift, after turns by roll, pitch and yaw about the fixed axes x, y and z in this order.
fn transform([x, y, z]: [f64; 3], [roll, pitch, yaw]: [f64; 3]) -> Transform {
    let ((sr, cr), (sp, cp), (sy, cy)) = (roll.sin_cos(), pitch.sin_cos(), yaw.sin_cos());
    [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, x],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, y],
        [-sp, cp * sr, cp * cr, z],
    ]
}

/// The frames of the seven links.
pub fn links(angles: &[f64]) -> [Transform; JOINTS] {
    let mut frame = transform([0.0; 3], [0.0; 3]);
    std::array::from_fn(|index| {
        let origin = transform(TABLE[index].xyz, TABLE[index].rpy);
        let turn = transform([0.0; 3], [0.0, 0.0, angles[index]]);
        frame = product(&product(&frame, &origin), &turn);
        frame
    })
}

/// The reference point of the peg, and the direction in which its tip points.
pub fn peg(angles: &[f64]) -> ([f64; 3], [f64; 3]) {
    // Connector .0488 beyond the last joint, gripper .0151 beyond that, the peg across it.
    let held = transform([-0.04, 0.0, 0.1 + 0.0151 + 0.0488], [0.0, R, 0.0]);
    let frame = product(&links(angles)[JOINTS - 1], &held);
    let direction = frame.map(|row| -row[2]);
    (
        std::array::from_fn(|axis| frame[axis][3] + 0.07 * direction[axis]),
        direction,
    )
}

/// What is wrong with a pose in which the reference point should be at `place` and the tip point down: metres, and
/// radians on a scale of 0.3 m.
fn error(angles: &[f64], place: [f64; 3]) -> [f64; 6] {
    let (point, [x, y, _]) = peg(angles);
    // The cross product of the direction and (0, 0, -1).
    let turn = [-y, x, 0.0];
    std::array::from_fn(|k| if k < 3 { place[k] - point[k] } else { 0.3 * turn[k - 3] })
}

/// Solves A·x = b by Gaussian elimination; A is symmetric and positive definite, so that no pivoting is needed.
fn solve(mut a: [[f64; 6]; 6], mut b: [f64; 6]) -> [f64; 6] {
    for pivot in 0..6 {
        for row in pivot + 1..6 {
            let factor = a[row][pivot] / a[pivot][pivot];
            let above = a[pivot];
            a[row]
                .iter_mut()
                .zip(above)
                .for_each(|(entry, above)| *entry -= factor * above);
            b[row] -= factor * b[pivot];
        }
    }
    for row in (0..6).rev() {
        let known: f64 = (row + 1..6).map(|column| a[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b
}

/// Inverse kinematics by damped least squares: angles near `angles` with the reference point at `place`, tip down.
pub fn reach(mut angles: [f64; JOINTS], place: [f64; 3], iterations: usize) -> [f64; JOINTS] {
    const WIDTH: f64 = 1e-6;
    for _ in 0..iterations {
        let wrong = error(&angles, place);
        let columns: [[f64; 6]; JOINTS] = std::array::from_fn(|joint| {
            let mut moved = angles;
            moved[joint] += WIDTH;
            let changed = error(&moved, place);
            std::array::from_fn(|k| (wrong[k] - changed[k]) / WIDTH)
        });
        let normal = std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let damping = if row == column { 1e-4 } else { 0.0 };
                damping + columns.iter().map(|c| c[row] * c[column]).sum::<f64>()
            })
        });
        let weights = solve(normal, wrong);
        for joint in 0..JOINTS {
            let step: f64 = columns[joint].iter().zip(weights).map(|(c, weight)| c * weight).sum();
            let [low, high] = TABLE[joint].range;
            angles[joint] = (angles[joint] + step).clamp(low, high);
        }
    }
    angles
}

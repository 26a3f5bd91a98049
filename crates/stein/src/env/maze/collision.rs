//! Exact continuous collision of a moving point with axis-aligned rectangles.
//!
//! ```text
//! one leg:   p → p + v·t, cut at the first entry into an open rectangle (slab test);
//!            there the velocity normal to the face becomes 0
//! one move:  a leg, then a leg along the face for the remaining time
//! ```
//!
//! Two legs always suffice: every impact removes one of the two velocity components, so after a second impact the point
//! is at rest. Only the *open* rectangles are solid: a point may touch a wall and slide along it. The side of a face
//! that a point is on is decided by comparing coordinates, never by arithmetic, and a contact gets the exact coordinate
//! of the face, so rounding cannot carry a point into a wall at any speed. Hitting a convex corner exactly counts as
//! hitting its vertical face.
//!
//! Reference for the slab test: Kay and Kajiya 1986, "Ray tracing complex scenes".

/// A position or a velocity in the plane.
pub type Point = [f64; 2];

/// An axis-aligned rectangle: [x least, y least, x largest, y largest].
pub type Rectangle = [f64; 4];

/// Whether a point is strictly inside a rectangle.
pub fn inside(point: Point, rectangle: &Rectangle) -> bool {
    (0..2).all(|axis| rectangle[axis] < point[axis] && point[axis] < rectangle[axis + 2])
}

/// Whether the interiors of two rectangles overlap.
pub fn overlap(a: &Rectangle, b: &Rectangle) -> bool {
    (0..2).all(|axis| a[axis].max(b[axis]) < a[axis + 2].min(b[axis + 2]))
}

/// What a point cannot enter: walls, and everything outside the square arena.
#[derive(Clone, Debug)]
pub struct Solids {
    rectangles: Vec<Rectangle>,
}

impl Solids {
    /// The arena [-half_width, half_width]² with these walls.
    pub fn new(half_width: f64, walls: &[Rectangle]) -> Self {
        let mut matter = matter(half_width, walls);
        // Bridges come first, so that a point that lands on the seam of a floor hits the floor and not a face inside
        // it.
        let mut rectangles = bridges(&matter);
        rectangles.append(&mut matter);
        Solids { rectangles }
    }

    /// Moves a point for a time at constant velocity, except for impacts, which stop the component normal to the face.
    /// Returns where the path bends (its end, if it is straight); from there to the end it is straight.
    pub fn advance(&self, position: &mut Point, velocity: &mut Point, time: f64) -> Point {
        let left = self.leg(position, velocity, time);
        let bend = *position;
        if left > 0.0 {
            self.leg(position, velocity, left);
        }
        bend
    }

    /// One straight leg; returns the time left after an impact, or 0 if there was none.
    fn leg(&self, position: &mut Point, velocity: &mut Point, time: f64) -> f64 {
        let from = *position;
        let mut end = [from[0] + velocity[0] * time, from[1] + velocity[1] * time];
        let (mut fraction, mut axis) = (1.0, None);
        // Each cut moves the end to a face nearer to `from`, so this terminates; a second pass is needed only if the
        // rounding of a cut has moved the end into a rectangle checked before.
        let mut cut = true;
        while cut {
            cut = false;
            for rectangle in &self.rectangles {
                if let Some(entry) = entry(from, end, rectangle) {
                    end = entry.point;
                    fraction *= entry.fraction;
                    axis = Some(entry.axis);
                    cut = true;
                }
            }
        }
        *position = end;
        match axis {
            Some(axis) => {
                velocity[axis] = 0.0;
                time * (1.0 - fraction)
            }
            None => 0.0,
        }
    }
}

/// The walls, and four half-planes for the outside of the arena.
fn matter(half_width: f64, walls: &[Rectangle]) -> Vec<Rectangle> {
    let (h, infinity) = (half_width, f64::INFINITY);
    let mut matter = vec![
        [-infinity, -infinity, -h, infinity],
        [h, -infinity, infinity, infinity],
        [-infinity, -infinity, infinity, -h],
        [-infinity, h, infinity, infinity],
    ];
    matter.extend_from_slice(walls);
    matter
}

/// A point where two walls touch only at their corners: a gap of zero width, through which a point could slip.
pub fn crack(half_width: f64, walls: &[Rectangle]) -> Option<Point> {
    let matter = matter(half_width, walls);
    // Whether something solid fills the quadrant next to the point in the direction of these signs.
    let filled = |point: Point, signs: [f64; 2]| {
        matter.iter().any(|solid| {
            (0..2).all(|axis| {
                let (low, place, high) = (solid[axis], point[axis], solid[axis + 2]);
                if signs[axis] > 0.0 {
                    low <= place && place < high
                } else {
                    low < place && place <= high
                }
            })
        })
    };
    for &[left, _, right, top] in walls {
        for &[other_left, other_bottom, other_right, _] in walls {
            // The other wall touches the upper right corner of this one, or the upper left.
            for (x, other_x, sign) in [(right, other_left, 1.0), (left, other_right, -1.0)] {
                let point = [x, top];
                let meet = x == other_x && top == other_bottom;
                if meet && !filled(point, [sign, -1.0]) && !filled(point, [-sign, 1.0]) {
                    return Some(point);
                }
            }
        }
    }
    None
}

/// Where a segment enters a rectangle.
struct Entry {
    /// The point of entry, on the face.
    point: Point,
    /// The fraction of the segment before it.
    fraction: f64,
    /// The axis normal to the face.
    axis: usize,
}

/// The first entry of the segment into the open rectangle. The segment starts outside it or on its boundary.
fn entry(from: Point, to: Point, rectangle: &Rectangle) -> Option<Entry> {
    let (mut enters, mut leaves, mut hit) = (f64::NEG_INFINITY, f64::INFINITY, None);
    for axis in 0..2 {
        let (start, end) = (from[axis], to[axis]);
        let (low, high) = (rectangle[axis], rectangle[axis + 2]);
        if start.min(end) >= high || start.max(end) <= low {
            return None;
        }
        if start == end {
            continue;
        }
        let (near, far) = if start < end { (low, high) } else { (high, low) };
        let beyond = |value: f64, face: f64| if start < end { value >= face } else { value <= face };
        if beyond(near, start) {
            let time = (near - start) / (end - start);
            if time > enters {
                (enters, hit) = (time, Some((axis, near)));
            }
        }
        if beyond(end, far) {
            leaves = leaves.min((far - start) / (end - start));
        }
    }
    let (axis, face) = hit?;
    if enters >= leaves {
        return None;
    }
    let other = 1 - axis;
    let mut point = [face; 2];
    point[other] = (from[other] + enters * (to[other] - from[other]))
        .clamp(from[other].min(to[other]), from[other].max(to[other]));
    Some(Entry {
        point,
        fraction: enters,
        axis,
    })
}

/// Rectangles that close the seams between solids that share part of an edge. Each lies within the two and contains the
/// seam; without them a point could slide along the seam, strictly inside neither.
fn bridges(solids: &[Rectangle]) -> Vec<Rectangle> {
    let mut bridges = Vec::new();
    for a in solids {
        for b in solids {
            for axis in 0..2 {
                let other = 1 - axis;
                let (low, high) = (a[other].max(b[other]), a[other + 2].min(b[other + 2]));
                if a[axis + 2] == b[axis] && low < high {
                    let mut bridge = [0.0; 4];
                    (bridge[axis], bridge[axis + 2]) = (a[axis], b[axis + 2]);
                    (bridge[other], bridge[other + 2]) = (low, high);
                    bridges.push(bridge);
                }
            }
        }
    }
    bridges
}

#[cfg(test)]
mod tests {
    use super::super::regions::Regions;
    use super::*;
    use proptest::prelude::*;

    fn moved(walls: &[Rectangle], mut position: Point, mut velocity: Point, time: f64) -> (Point, Point) {
        Solids::new(2.0, walls).advance(&mut position, &mut velocity, time);
        (position, velocity)
    }

    #[test]
    fn sliding_keeps_the_tangential_velocity_and_the_time_left() {
        let wall = [[0.5, -1.0, 1.0, 1.0]];
        assert_eq!(moved(&wall, [0.0, 0.0], [1.0, 0.25], 1.0), ([0.5, 0.25], [0.0, 0.25]));
        // Beyond the end of the wall nothing blocks it, but the lost component stays lost.
        assert_eq!(moved(&wall, [0.25, 0.0], [0.5, 1.0], 1.5), ([0.5, 1.5], [0.0, 1.0]));
        assert_eq!(moved(&[], [0.0, 0.0], [3.0, -4.0], 1.0), ([2.0, -2.0], [0.0, 0.0]));
    }

    #[test]
    fn a_thin_wall_stops_any_speed() {
        let wall = [[-1.0, 0.0, 1.0, 1e-12]];
        for speed in [1.0, 1e3, 1e6, 1e12] {
            assert_eq!(moved(&wall, [0.0, -1.0], [0.0, speed], 2.0), ([0.0, 0.0], [0.0, 0.0]));
        }
    }

    #[test]
    fn corners_are_deterministic() {
        let wall = [[0.0, 0.0, 1.0, 1.0]];
        // Exactly at a convex corner: the vertical face stops it.
        assert_eq!(moved(&wall, [-1.0, -1.0], [1.0, 1.0], 1.5), ([0.0, 0.5], [0.0, 1.0]));
        // Grazing a corner is free.
        assert_eq!(moved(&wall, [-0.5, 0.5], [1.0, 1.0], 1.0), ([0.5, 1.5], [1.0, 1.0]));
        // Into the corner of two walls: both components stop.
        let corner = [[0.0, -1.0, 1.0, 1.0], [-1.0, 0.0, 0.5, 1.0]];
        assert_eq!(moved(&corner, [-1.0, -1.0], [1.0, 1.0], 1.5), ([0.0, 0.0], [0.0, 0.0]));
    }

    #[test]
    fn seams_are_closed() {
        // Along the left face of one wall, into the seam with another; along the border, into a wall that touches it.
        let walls = [[1.0, -2.0, 1.5, 1.0], [0.0, 0.0, 1.0, 1.0], [-2.0, 0.0, -1.0, 1.0]];
        assert_eq!(moved(&walls, [1.0, -1.0], [0.0, 1.0], 1.5).0, [1.0, 0.0]);
        assert_eq!(moved(&walls, [-2.0, -1.0], [0.0, 1.0], 1.5).0, [-2.0, 0.0]);
        // Landing exactly on the seam of a floor, the point slides on along the floor.
        let floor = [[-1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]];
        assert_eq!(moved(&floor, [-0.5, 1.5], [1.0, -1.0], 1.0), ([0.5, 1.0], [1.0, 0.0]));
    }

    #[test]
    fn cracks_are_found() {
        let (a, b) = ([-1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(crack(2.0, &[a, b]), Some([0.0, 0.0]));
        assert_eq!(
            crack(2.0, &[[-1.0, 0.0, 0.0, 1.0], [0.0, -1.0, 1.0, 0.0]]),
            Some([0.0, 0.0])
        );
        assert_eq!(crack(2.0, &[a, b, [0.0, -1.0, 1.0, 0.0]]), None);
        assert_eq!(crack(2.0, &[a, [-2.0, -2.0, -1.0, 0.5]]), None);
    }

    /// Whether a segment meets the slightly shrunk rectangle, by separating axes: independent of the slab test.
    fn crosses(a: Point, b: Point, rectangle: &Rectangle) -> bool {
        let hair = 1e-9;
        let [x0, y0, x1, y1] = *rectangle;
        let shrunk = [x0 + hair, y0 + hair, x1 - hair, y1 - hair];
        let boxes = (0..2).all(|i| a[i].min(b[i]) < shrunk[i + 2] && a[i].max(b[i]) > shrunk[i]);
        let side = |x: f64, y: f64| (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
        let sides = [
            side(shrunk[0], shrunk[1]),
            side(shrunk[0], shrunk[3]),
            side(shrunk[2], shrunk[1]),
            side(shrunk[2], shrunk[3]),
        ];
        boxes && sides.iter().any(|&s| s > 0.0) && sides.iter().any(|&s| s < 0.0)
    }

    /// Walls anywhere, or on a coarse lattice, where many of them touch and overlap.
    fn walls() -> impl Strategy<Value = Vec<Rectangle>> {
        let anywhere =
            (-2.0..1.9f64, -2.0..1.9f64, 0.01..1.5f64, 0.01..1.5f64).prop_map(|(x, y, w, h)| [x, y, x + w, y + h]);
        let lattice = (-4..4i32, -4..4i32, 1..5i32, 1..5i32)
            .prop_map(|(x, y, w, h)| [x, y, x + w, y + h].map(|value| f64::from(value) / 2.0));
        prop_oneof![
            prop::collection::vec(anywhere, 0..8),
            prop::collection::vec(lattice, 0..10)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_point_never_gets_into_a_wall_or_out_of_its_region(
            walls in walls(),
            start in prop::array::uniform2(-2.0..2.0f64),
            moves in prop::collection::vec((0.0..std::f64::consts::TAU, -6.0..6.0f64, 0..4usize), 1..40),
        ) {
            prop_assume!(!walls.iter().any(|wall| inside(start, wall)));
            let solids = Solids::new(2.0, &walls);
            prop_assume!(crack(2.0, &walls).is_none());
            let regions = Regions::new(2.0, &walls);
            let mut position = start;
            for (angle, exponent, kind) in moves {
                let speed = 10f64.powf(exponent);
                // Pushes along an axis and along a diagonal find the seams and corners of the lattice.
                let mut velocity = match kind {
                    0 => [speed * angle.cos().signum(), 0.0],
                    1 => [0.0, speed * angle.sin().signum()],
                    2 => [speed * angle.cos().signum(), speed * angle.sin().signum()],
                    _ => [speed * angle.cos(), speed * angle.sin()],
                };
                let (from, pushed) = (position, velocity);
                let bend = solids.advance(&mut position, &mut velocity, 0.1);
                for wall in &walls {
                    prop_assert!(!inside(bend, wall) && !inside(position, wall), "{position:?} in {wall:?}");
                    prop_assert!(!crosses(from, bend, wall) && !crosses(bend, position, wall), "through {wall:?}");
                }
                prop_assert!(position.iter().all(|value| value.abs() <= 2.0));
                prop_assert!((0..2).all(|axis| velocity[axis] == pushed[axis] || velocity[axis] == 0.0));
                prop_assert!(regions.connected(start, position), "{from:?} to {position:?} left its region");
            }
        }
    }
}

//! The connected regions of free space, exactly.
//!
//! The faces of all walls cut the arena into a lattice whose cells are entirely solid or entirely free, however narrow
//! a gap is. Free cells that share an edge are connected.

use super::collision::{Point, Rectangle};

/// The regions of a square arena with walls.
pub struct Regions {
    /// Lattice lines of each axis, ascending.
    lines: [Vec<f64>; 2],
    /// Region of each cell, row after row; none if it is solid.
    regions: Vec<Option<usize>>,
}

impl Regions {
    /// The regions of the arena [-half_width, half_width]² with these walls.
    pub fn new(half_width: f64, walls: &[Rectangle]) -> Self {
        let lines = [0, 1].map(|axis| {
            let faces = walls.iter().flat_map(|wall| [wall[axis], wall[axis + 2]]);
            let mut lines: Vec<f64> = faces.filter(|face| face.abs() < half_width).collect();
            lines.extend([-half_width, half_width]);
            lines.sort_by(f64::total_cmp);
            lines.dedup();
            lines
        });
        let [columns, rows] = [0, 1].map(|axis| lines[axis].len() - 1);
        let mut solid = vec![false; columns * rows];
        for wall in walls {
            let [x, y] = [0, 1].map(|axis| {
                let cell = |face: f64| lines[axis].partition_point(|&line| line < face);
                cell(wall[axis])..cell(wall[axis + 2]).min(lines[axis].len() - 1)
            });
            for row in y {
                solid[row * columns..][x.clone()].fill(true);
            }
        }
        let regions = flood(&solid, columns);
        Regions { lines, regions }
    }

    /// Whether two points are connected through free space; a point on a face belongs to every region it touches.
    pub fn connected(&self, a: Point, b: Point) -> bool {
        let there: Vec<usize> = self.around(b).collect();
        self.around(a).any(|region| there.contains(&region))
    }

    /// The regions that a point touches.
    fn around(&self, point: Point) -> impl Iterator<Item = usize> + '_ {
        let [x, y] = [0, 1].map(|axis| {
            let lines = &self.lines[axis];
            let first = lines.partition_point(|&line| line < point[axis]).saturating_sub(1);
            let last = lines.partition_point(|&line| line <= point[axis]).min(lines.len() - 1);
            first..last
        });
        let columns = self.lines[0].len() - 1;
        y.flat_map(move |row| x.clone().filter_map(move |column| self.regions[row * columns + column]))
    }
}

/// Numbers the connected sets of non-solid cells.
fn flood(solid: &[bool], columns: usize) -> Vec<Option<usize>> {
    let mut regions = vec![None; solid.len()];
    let mut frontier = Vec::new();
    for first in 0..solid.len() {
        if solid[first] || regions[first].is_some() {
            continue;
        }
        regions[first] = Some(first);
        frontier.push(first);
        while let Some(cell) = frontier.pop() {
            let column = cell % columns;
            let neighbours = [
                (column > 0).then(|| cell - 1),
                (column + 1 < columns).then_some(cell + 1),
                cell.checked_sub(columns),
                Some(cell + columns).filter(|&above| above < solid.len()),
            ];
            for neighbour in neighbours.into_iter().flatten() {
                if !solid[neighbour] && regions[neighbour].is_none() {
                    regions[neighbour] = Some(first);
                    frontier.push(neighbour);
                }
            }
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_gap_connects_and_a_closed_box_does_not() {
        let (below, above) = ([0.0, -1.0], [0.0, 1.0]);
        let split = |gap: f64| Regions::new(2.0, &[[-3.0, -0.1, 0.5, 0.1], [0.5 + gap, -0.1, 2.0, 0.1]]);
        assert!(split(1e-12).connected(below, above));
        assert!(!split(0.0).connected(below, above));
        assert!(split(0.0).connected(below, [-1.9, -0.1]));
        assert!(Regions::new(2.0, &[]).connected(below, [2.0, 2.0]));
    }
}

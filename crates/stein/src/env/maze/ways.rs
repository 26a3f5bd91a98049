//! The way a path takes around the walls: its homotopy signature.
//!
//! ```text
//! island   walls that touch each other, but not the border
//! ray k    from a point inside island k straight up to the border
//! word     the rays that the path crosses, in order: +k rightwards, -k leftwards; then k·(-k) = 1 until none is left
//! ```
//!
//! Two paths with the same endpoints can be deformed into each other without crossing a wall if and only if their
//! reduced words agree: the words are the elements of the fundamental group of the plane without the islands, which is
//! free. So a loop around an island is a different way, and a detour that is retraced is not. A ray may pass through
//! other walls, where no path crosses it.
//!
//! Paths are straight lines between the recorded states. A step that slides along a wall is longer than its line; the
//! word is right as long as no whole wall fits between the two.
//!
//! Reference: Bhattacharya, Likhachev and Kumar 2012, "Topological constraints in search-based robot path planning".

use super::collision::{Point, Rectangle};

/// A reduced word: ray numbers, counted from 1 in ascending x, negative where crossed leftwards.
pub type Way = Vec<i32>;

/// The rays of a maze, ascending in x.
#[derive(Clone, Debug)]
pub struct Ways {
    rays: Vec<Point>,
}

impl Ways {
    /// The rays of the islands among these walls.
    pub fn new(half_width: f64, walls: &[Rectangle]) -> Self {
        let mut rays: Vec<Point> = Vec::new();
        for island in islands(half_width, walls) {
            let [x0, y0, x1, y1] = island;
            // Two rays must not coincide: try positions in the wall by the golden ratio until one is free.
            let places = (0..=rays.len()).map(|k| x0 + (0.5 + 0.5 * (0.618 * k as f64).fract()) * (x1 - x0));
            let free = places.into_iter().find(|&x| rays.iter().all(|ray| ray[0] != x));
            rays.push([free.unwrap_or(x0), 0.5 * (y0 + y1)]);
        }
        rays.sort_by(|a, b| a[0].total_cmp(&b[0]));
        Ways { rays }
    }

    /// The way of a path.
    pub fn of(&self, path: &[Point]) -> Way {
        let mut word = Way::new();
        for leg in path.windows(2) {
            let (a, b) = (leg[0], leg[1]);
            // Rays in (least x, largest x], so that a state exactly on a ray is counted once.
            let place = |x: f64| self.rays.partition_point(|ray| ray[0] <= x);
            let (from, to) = (place(a[0]), place(b[0]));
            let crossed = |ray: usize| {
                let [x, y] = self.rays[ray];
                a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1]) > y
            };
            for ray in (from..to).filter(|&ray| crossed(ray)) {
                push(&mut word, ray as i32 + 1);
            }
            for ray in (to..from).rev().filter(|&ray| crossed(ray)) {
                push(&mut word, -(ray as i32 + 1));
            }
        }
        word
    }
}

/// Appends a letter to a reduced word.
fn push(word: &mut Way, letter: i32) {
    if word.last() == Some(&-letter) {
        word.pop();
    } else {
        word.push(letter);
    }
}

/// One wall of each island.
fn islands(half_width: f64, walls: &[Rectangle]) -> Vec<Rectangle> {
    let touch = |a: &Rectangle, b: &Rectangle| (0..2).all(|i| a[i].max(b[i]) <= a[i + 2].min(b[i + 2]));
    let mut seen = vec![false; walls.len()];
    let mut islands = Vec::new();
    for first in 0..walls.len() {
        if seen[first] {
            continue;
        }
        seen[first] = true;
        let mut ashore = false;
        let mut frontier = vec![first];
        while let Some(wall) = frontier.pop() {
            ashore |= (0..2).any(|i| walls[wall][i] <= -half_width || walls[wall][i + 2] >= half_width);
            for other in 0..walls.len() {
                if !seen[other] && touch(&walls[wall], &walls[other]) {
                    seen[other] = true;
                    frontier.push(other);
                }
            }
        }
        if !ashore {
            islands.push(walls[first]);
        }
    }
    islands
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Rectangle = [-0.5, -0.5, 0.5, 0.5];

    #[test]
    fn sides_differ_and_detours_do_not() {
        let ways = Ways::new(2.0, &[BOX]);
        let below = ways.of(&[[-1.0, 0.0], [-0.6, -1.0], [0.7, -0.8], [1.0, 0.0]]);
        let above = ways.of(&[[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]);
        let above_and_back_and_above = ways.of(&[[-1.0, 0.0], [0.3, 1.0], [-0.3, 1.5], [0.0, 0.7], [1.0, 0.0]]);
        assert!(below.is_empty(), "{below:?}");
        assert_eq!(above, [1]);
        assert_eq!(above_and_back_and_above, above);
    }

    #[test]
    fn loops_count_and_unwind() {
        let ways = Ways::new(2.0, &[BOX]);
        let square = [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]];
        let twice: Vec<Point> = square.iter().chain(&square[1..]).copied().collect();
        assert_eq!(ways.of(&twice), [1, 1]);
        let undone: Vec<Point> = twice.iter().chain(twice.iter().rev()).copied().collect();
        assert!(ways.of(&undone).is_empty());
    }

    #[test]
    fn order_matters_as_in_a_free_group() {
        let ways = Ways::new(2.0, &[[-1.0, -0.1, -0.8, 0.1], [0.8, -0.1, 1.0, 0.1]]);
        let left = [[0.0, 0.0], [-0.9, 1.0], [-1.5, 0.0], [-0.9, -1.0], [0.0, 0.0]];
        let right = [[0.0, 0.0], [0.9, 1.0], [1.5, 0.0], [0.9, -1.0], [0.0, 0.0]];
        assert_eq!(ways.of(&[left, right].concat()), [-1, 2]);
        assert_eq!(ways.of(&[right, left].concat()), [2, -1]);
    }

    #[test]
    fn touching_walls_are_one_island_and_walls_at_the_border_none() {
        let touching = [[0.0, 0.0, 0.5, 0.2], [0.5, 0.0, 0.7, 1.0], [0.6, 0.9, 1.0, 1.1]];
        assert_eq!(Ways::new(2.0, &touching).rays.len(), 1);
        let ashore = [[0.0, 0.0, 0.5, 0.2], [0.5, 0.1, 2.0, 0.3]];
        assert_eq!(Ways::new(2.0, &ashore).rays.len(), 0);
    }

    #[test]
    fn rays_of_walls_above_each_other_are_distinct() {
        let column = [[-0.5, -1.0, 0.5, -0.8], [-0.5, 0.0, 0.5, 0.2], [-0.5, 1.0, 0.5, 1.2]];
        let ways = Ways::new(2.0, &column);
        assert!(ways.rays.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        // The same point left of the column, reached between different walls.
        let crossing = |y: f64| ways.of(&[[1.0, -1.5], [1.0, y], [-1.0, y], [-1.0, -1.5]]);
        let words = [-1.5, -0.5, 0.5, 1.5].map(crossing);
        for (i, a) in words.iter().enumerate() {
            assert!(words[i + 1..].iter().all(|b| a != b), "{words:?}");
        }
    }
}

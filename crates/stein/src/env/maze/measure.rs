//! Metrics of episodes in the maze; `docs/maze.md` has the formulas.

use std::collections::HashSet;

use super::collision::{Point, Rectangle, inside};
use super::ways::{Way, Ways};
use super::{MazeConfig, SIGNALS};
use crate::env::{Episode, Measure};

/// The positions of an episode.
pub fn positions(episode: &Episode) -> Vec<Point> {
    let states = episode.signals.chunks_exact(SIGNALS.len());
    states.map(|state| [state[0], state[1]]).collect()
}

/// The distance between two points.
pub fn distance(a: Point, b: Point) -> f64 {
    // Not hypot: its results differ between versions of the system library.
    ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
}

/// Mean final distance to the goal, and fraction of the episodes that end inside the goal circle.
pub fn of_policy(maze: &MazeConfig, episodes: &[Episode]) -> Vec<Measure> {
    if episodes.is_empty() {
        return Vec::new();
    }
    let ends = || {
        let paths = episodes.iter().map(positions);
        paths.filter_map(|path| path.last().map(|&end| distance(end, maze.goal)))
    };
    vec![
        ("final_distance", mean(ends())),
        ("success_rate", success_rate(maze, episodes)),
    ]
}

/// Coverage, mean pairwise distance, number of ways and fraction of successful policies.
pub fn of_ensemble(maze: &MazeConfig, policies: &[Vec<Episode>]) -> Vec<Measure> {
    if policies.is_empty() {
        return Vec::new();
    }
    let successful = |episodes: &&Vec<Episode>| success_rate(maze, episodes) >= 0.5;
    let ways = Ways::new(maze.half_width, &maze.walls);
    let taken: HashSet<Way> = policies
        .iter()
        .filter(successful)
        .filter_map(|episodes| way_of_policy(maze, &ways, episodes))
        .collect();
    let paths: Vec<Vec<Vec<Point>>> = policies
        .iter()
        .map(|episodes| episodes.iter().map(positions).collect())
        .collect();
    vec![
        ("coverage", coverage(maze, &paths)),
        ("pairwise_distance", pairwise_distance(&paths)),
        ("ways", taken.len() as f64),
        (
            "successful",
            policies.iter().filter(successful).count() as f64 / policies.len() as f64,
        ),
    ]
}

/// The way from the start to the first entry of the goal circle; none if the episode does not end inside the circle.
///
/// The path is extended to the centres of start and goal, so that the ways of all episodes have the same endpoints.
/// Both extensions are free of walls, because the start square and the goal circle are.
pub fn way_of_episode(maze: &MazeConfig, ways: &Ways, episode: &Episode) -> Option<Way> {
    let states = positions(episode);
    if distance(*states.last()?, maze.goal) > maze.goal_radius {
        return None;
    }
    let mut path = vec![maze.start, states[0]];
    for &state in &states {
        let nearest = nearest_to(maze.goal, path[path.len() - 1], state);
        if distance(nearest, maze.goal) <= maze.goal_radius {
            path.push(nearest);
            break;
        }
        path.push(state);
    }
    path.push(maze.goal);
    Some(ways.of(&path))
}

/// The way of most of a policy's successful episodes, the earliest in a tie.
pub fn way_of_policy(maze: &MazeConfig, ways: &Ways, episodes: &[Episode]) -> Option<Way> {
    let taken: Vec<Way> = episodes
        .iter()
        .filter_map(|episode| way_of_episode(maze, ways, episode))
        .collect();
    let votes = |way: &Way| taken.iter().filter(|other| *other == way).count();
    // `max_by_key` takes the last of equals, hence the reversal.
    taken.iter().rev().max_by_key(|way| votes(way)).cloned()
}

fn success_rate(maze: &MazeConfig, episodes: &[Episode]) -> f64 {
    let success = |path: Vec<Point>| {
        path.last()
            .is_some_and(|&end| distance(end, maze.goal) <= maze.goal_radius)
    };
    mean(episodes.iter().map(|episode| f64::from(success(positions(episode)))))
}

/// Fraction of the free cells that any path crosses.
fn coverage(maze: &MazeConfig, paths: &[Vec<Vec<Point>>]) -> f64 {
    let mut grid = Grid::new(maze.half_width, maze.cell, &maze.walls);
    for path in paths.iter().flatten() {
        if let [alone] = path[..] {
            grid.mark(alone, alone);
        }
        for leg in path.windows(2) {
            grid.mark(leg[0], leg[1]);
        }
    }
    grid.share()
}

/// Mean distance of positions over pairs of policies, episodes with the same number, and time.
fn pairwise_distance(paths: &[Vec<Vec<Point>>]) -> f64 {
    let pairs = (0..paths.len()).flat_map(|i| (i + 1..paths.len()).map(move |j| (i, j)));
    mean(pairs.map(|(i, j)| {
        let episodes = paths[i].iter().zip(&paths[j]);
        mean(episodes.map(|(a, b)| mean(a.iter().zip(b).map(|(&a, &b)| distance(a, b)))))
    }))
}

/// The mean; 0 if empty.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

/// The point of the segment a-b nearest to `point`.
fn nearest_to(point: Point, a: Point, b: Point) -> Point {
    let along = [b[0] - a[0], b[1] - a[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = ((point[0] - a[0]) * along[0] + (point[1] - a[1]) * along[1]) / length.max(f64::MIN_POSITIVE);
    let share = share.clamp(0.0, 1.0);
    [a[0] + share * along[0], a[1] + share * along[1]]
}

/// The cells of the arena and which of them were visited.
struct Grid {
    half_width: f64,
    cell: f64,
    side: usize,
    free: Vec<bool>,
    visited: Vec<bool>,
}

impl Grid {
    fn new(half_width: f64, cell: f64, walls: &[Rectangle]) -> Self {
        let side = cells_of_side(half_width, cell);
        // A centre on the face of a wall counts as free, whatever the rounding of its coordinate.
        let hair = 1e-9 * cell;
        let solid: Vec<Rectangle> = walls
            .iter()
            .map(|&[x0, y0, x1, y1]| [x0 + hair, y0 + hair, x1 - hair, y1 - hair])
            .collect();
        let centre = |index: usize| -half_width + (index as f64 + 0.5) * cell;
        let free: Vec<bool> = (0..side * side)
            .map(|index| [centre(index % side), centre(index / side)])
            .map(|point| !solid.iter().any(|wall| inside(point, wall)))
            .collect();
        let visited = vec![false; free.len()];
        Grid {
            half_width,
            cell,
            side,
            free,
            visited,
        }
    }

    fn index(&self, coordinate: f64) -> usize {
        // The cast maps negative values to 0.
        (((coordinate + self.half_width) / self.cell) as usize).min(self.side - 1)
    }

    /// Marks the cells that a segment crosses, column by column.
    fn mark(&mut self, a: Point, b: Point) {
        let (a, b) = if a[0] <= b[0] { (a, b) } else { (b, a) };
        let (first, last) = (self.index(a[0]), self.index(b[0]));
        for column in first..=last {
            let height = |line: usize| {
                let x = -self.half_width + line as f64 * self.cell;
                a[1] + ((x - a[0]) / (b[0] - a[0])).clamp(0.0, 1.0) * (b[1] - a[1])
            };
            let enters = if column == first { a[1] } else { height(column) };
            let leaves = if column == last { b[1] } else { height(column + 1) };
            for row in self.index(enters.min(leaves))..=self.index(enters.max(leaves)) {
                self.visited[row * self.side + column] = true;
            }
        }
    }

    fn share(&self) -> f64 {
        let free = self.free.iter().filter(|&&free| free).count();
        let both = self
            .free
            .iter()
            .zip(&self.visited)
            .filter(|&(&free, &visited)| free && visited);
        both.count() as f64 / free.max(1) as f64
    }
}

/// Number of cells along a side of the arena; the last one may stick out.
pub fn cells_of_side(half_width: f64, cell: f64) -> usize {
    // Minus 1e-9, so that 4 / 0.1 is 40 whatever the rounding.
    ((2.0 * half_width / cell - 1e-9).ceil() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(path: &[Point]) -> Episode {
        Episode {
            rewards: vec![0.0; path.len() - 1],
            signals: path.iter().flat_map(|&[x, y]| [x, y, 0.0, 0.0, 0.0]).collect(),
            ..Episode::default()
        }
    }

    fn value(measures: &[Measure], name: &str) -> f64 {
        measures.iter().find(|(other, _)| *other == name).unwrap().1
    }

    #[test]
    fn coverage_counts_every_cell_of_a_fast_path_once() {
        let open = MazeConfig {
            walls: Vec::new(),
            half_width: 2.0,
            cell: 0.5,
            ..MazeConfig::default()
        };
        let along = vec![vec![vec![[-1.9, 0.1], [1.9, 0.1]]]];
        assert_eq!(coverage(&open, &along), 8.0 / 64.0);
        let up_and_down = vec![vec![vec![[0.1, -1.9], [0.1, 1.9], [0.1, -1.9]]]];
        assert_eq!(coverage(&open, &up_and_down), 8.0 / 64.0);
        // This line crosses 7 vertical and 7 horizontal lattice lines, and shares two cells with the first.
        let slanted = vec![vec![vec![[-1.9, -1.7], [1.9, 1.8]]]];
        assert_eq!(coverage(&open, &slanted), 15.0 / 64.0);
        assert_eq!(coverage(&open, &[along, slanted].concat()), 21.0 / 64.0);
    }

    #[test]
    fn the_default_grid_is_symmetric_and_of_the_documented_size() {
        let maze = MazeConfig::default();
        let grid = Grid::new(maze.half_width, maze.cell, &maze.walls);
        assert_eq!(grid.side, 40);
        assert_eq!(grid.free.iter().filter(|&&free| free).count(), 1520);
        for row in grid.free.chunks(40) {
            assert!(row.iter().eq(row.iter().rev()));
        }
    }

    #[test]
    fn pairwise_distance_is_a_mean_over_pairs_episodes_and_time() {
        let still = |x: f64| vec![[x, 0.0], [x, 0.0]];
        assert_eq!(
            pairwise_distance(&[vec![still(0.0)], vec![still(1.0)], vec![still(3.0)]]),
            2.0
        );
        let parting = vec![[0.0, 0.0], [3.0, 4.0]];
        assert_eq!(pairwise_distance(&[vec![still(0.0)], vec![parting.clone()]]), 2.5);
        assert_eq!(
            pairwise_distance(&[vec![still(0.0), still(0.0)], vec![parting, still(1.0)]]),
            1.75
        );
        assert_eq!(pairwise_distance(&[vec![still(0.0)]]), 0.0);
    }

    #[test]
    fn success_is_at_the_end_and_ways_are_those_of_successful_policies() {
        let maze = MazeConfig::default();
        let centre = || episode(&[[0.0, -1.7], [0.0, 0.05]]);
        let right = || episode(&[[0.0, -1.7], [0.6, -1.2], [0.6, -0.6], [0.0, 0.0]]);
        let passing = || episode(&[[0.0, -1.7], [0.0, 0.0], [0.0, 0.5]]);
        let measures = of_policy(&maze, &[centre(), passing()]);
        assert_eq!(value(&measures, "success_rate"), 0.5);
        assert!((value(&measures, "final_distance") - 0.275).abs() < 1e-12);

        let policies = vec![
            vec![centre(), right(), right()],
            vec![centre(), passing()],
            vec![passing(), passing(), right()],
        ];
        let measures = of_ensemble(&maze, &policies);
        assert_eq!(value(&measures, "ways"), 2.0);
        assert_eq!(value(&measures, "successful"), 2.0 / 3.0);
    }

    #[test]
    fn what_happens_after_the_first_entry_of_the_goal_does_not_change_the_way() {
        let maze = MazeConfig::default();
        let ways = Ways::new(maze.half_width, &maze.walls);
        let way = |path: &[Point]| way_of_episode(&maze, &ways, &episode(path));
        let direct = way(&[[0.0, -1.7], [0.0, 0.0]]);
        // Through the goal within one step, around the bar on the right, and back.
        let round = [[0.9, 0.0], [0.9, 0.6], [0.0, 0.6], [0.0, 0.0]];
        let after = [
            &[[0.02, -1.7], [0.02, -0.4], [0.02, 0.4], [0.3, -0.4], [0.9, -0.4]],
            &round[..],
        ]
        .concat();
        assert_eq!(way(&after), direct);
        let before = [&[[0.02, -1.7], [0.02, -0.4], [0.9, -0.4]], &round[..]].concat();
        assert_ne!(way(&before), direct);
        assert_eq!(way(&[[0.0, -1.7], [0.0, -0.2]]), None);
    }
}

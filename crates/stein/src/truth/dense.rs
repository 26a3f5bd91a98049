//! Small dense matrices: products, linear systems, Cholesky factors.
//!
//! ```text
//! solve      A·x = b         Gaussian elimination with partial pivoting
//! cholesky   A = L·Lᵀ        for symmetric positive definite A
//! ```
//!
//! Reference: Golub and Van Loan, "Matrix Computations", sections 3.4 and 4.2.

/// A matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Entries `[rows][columns]`.
    pub entries: Vec<f64>,
}

impl Matrix {
    /// A matrix of these entries, row by row. Panics if their number is wrong: a bug of the caller.
    pub fn new(rows: usize, columns: usize, entries: Vec<f64>) -> Self {
        assert_eq!(entries.len(), rows * columns, "entries of a {rows} × {columns} matrix");
        Matrix { rows, columns, entries }
    }

    /// The identity times `scale`.
    pub fn scaled_identity(size: usize, scale: f64) -> Self {
        let mut matrix = Matrix::new(size, size, vec![0.0; size * size]);
        for index in 0..size {
            matrix.entries[index * size + index] = scale;
        }
        matrix
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.entries[row * self.columns..][..self.columns]
    }

    /// The transposed matrix.
    pub fn transposed(&self) -> Matrix {
        let entries = (0..self.columns)
            .flat_map(|column| (0..self.rows).map(move |row| self.entries[row * self.columns + column]))
            .collect();
        Matrix::new(self.columns, self.rows, entries)
    }

    /// The product self·other.
    pub fn times(&self, other: &Matrix) -> Matrix {
        let columns = other.transposed();
        let entries = (0..self.rows).flat_map(|row| columns.apply(self.row(row))).collect();
        Matrix::new(self.rows, other.columns, entries)
    }

    /// The product self·vector. Panics if the lengths differ: a bug of the caller.
    pub fn apply(&self, vector: &[f64]) -> Vec<f64> {
        assert_eq!(self.columns, vector.len(), "columns of a matrix and length of a vector");
        (0..self.rows).map(|row| dot(self.row(row), vector)).collect()
    }

    /// self·middle·selfᵀ: the covariance of self·x if x has covariance `middle`.
    pub fn sandwich(&self, middle: &Matrix) -> Matrix {
        self.times(middle).times(&self.transposed())
    }

    /// The sum of two matrices of the same shape.
    pub fn plus(&self, other: &Matrix) -> Matrix {
        Matrix::new(self.rows, self.columns, plus(&self.entries, &other.entries))
    }

    /// The lower triangle L with self = L·Lᵀ, or none if the (symmetric) matrix is not positive definite.
    pub fn cholesky(&self) -> Option<Matrix> {
        let size = self.rows;
        let mut lower = Matrix::new(size, size, vec![0.0; size * size]);
        for i in 0..size {
            for j in 0..=i {
                let rest = self.entries[i * size + j] - dot(&lower.row(i)[..j], &lower.row(j)[..j]);
                lower.entries[i * size + j] = if i != j {
                    rest / lower.entries[j * size + j]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(lower)
    }
}

/// The dot product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of two vectors.
pub fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// The solution x of L·Lᵀ·x = right for a lower triangle L from [`Matrix::cholesky`].
pub fn cholesky_solve(lower: &Matrix, right: &[f64]) -> Vec<f64> {
    let mut x = right.to_vec();
    for i in 0..lower.rows {
        x[i] = (x[i] - dot(&lower.row(i)[..i], &x[..i])) / lower.row(i)[i];
    }
    for i in (0..lower.rows).rev() {
        x[i] /= lower.row(i)[i];
        let (below, value) = x.split_at_mut(i);
        below.iter_mut().zip(lower.row(i)).for_each(|(x, l)| *x -= l * value[0]);
    }
    x
}

/// The solution x of matrix·x = right, or none if the square matrix is singular.
pub fn solve(mut matrix: Matrix, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = matrix.rows;
    for column in 0..size {
        let at = |row: usize| matrix.entries[row * size + column].abs();
        let pivot = (column..size).max_by(|&a, &b| at(a).total_cmp(&at(b)).then(b.cmp(&a)))?;
        if at(pivot) == 0.0 || !at(pivot).is_finite() {
            return None;
        }
        if pivot != column {
            let (above, below) = matrix.entries.split_at_mut(pivot * size);
            above[column * size..][..size].swap_with_slice(&mut below[..size]);
            right.swap(column, pivot);
        }
        let (above, below) = matrix.entries.split_at_mut((column + 1) * size);
        let pivot_row = &above[column * size..];
        for (offset, row) in below.chunks_exact_mut(size).enumerate() {
            let factor = row[column] / pivot_row[column];
            // Keeps exact zeros exact, and saves work on sparse matrices.
            if factor != 0.0 {
                for (entry, &pivot) in row[column..].iter_mut().zip(&pivot_row[column..]) {
                    *entry -= factor * pivot;
                }
                right[column + 1 + offset] -= factor * right[column];
            }
        }
    }
    for row in (0..size).rev() {
        let entries = matrix.row(row);
        let known = dot(&entries[row + 1..], &right[row + 1..]);
        right[row] = (right[row] - known) / entries[row];
    }
    Some(right)
}

/// The inverse of a lower triangle without zeros on its diagonal.
pub fn invert_lower(lower: &Matrix) -> Matrix {
    let size = lower.rows;
    let mut inverse = Matrix::new(size, size, vec![0.0; size * size]);
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (column..row).map(|k| lower.row(row)[k] * inverse.row(k)[column]).sum();
            let unit = if row == column { 1.0 } else { 0.0 };
            inverse.entries[row * size + column] = (unit - known) / lower.row(row)[row];
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn random(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut random = crate::rng::Stream::seed_from_u64(seed);
        let entries = (0..rows * columns).map(|_| random.random_range(-1.0..1.0)).collect();
        Matrix::new(rows, columns, entries)
    }

    fn close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-10, "{a} {b}");
        }
    }

    #[test]
    fn a_cholesky_factor_solves_its_system() {
        let matrix = Matrix::new(3, 3, vec![4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 2.0]);
        let x = cholesky_solve(&matrix.cholesky().unwrap(), &[1.0, 2.0, -3.0]);
        let back = matrix.apply(&x);
        assert!(
            back.iter().zip([1.0, 2.0, -3.0]).all(|(a, b)| (a - b).abs() < 1e-12),
            "{back:?}"
        );
    }

    #[test]
    fn solutions_satisfy_their_systems() {
        for size in 1..12 {
            let matrix = random(size, size, size as u64);
            let x = random(size, 1, 100).entries;
            close(&solve(matrix.clone(), matrix.apply(&x)).unwrap(), &x);
        }
    }

    #[test]
    fn a_zero_on_the_diagonal_is_pivoted_and_a_singular_matrix_refused() {
        let swap = Matrix::new(2, 2, vec![0.0, 1.0, 1.0, 0.0]);
        close(&solve(swap, vec![3.0, 4.0]).unwrap(), &[4.0, 3.0]);
        let tiny = Matrix::new(2, 2, vec![1e-20, 1.0, 1.0, 1.0]);
        close(&solve(tiny, vec![1.0, 2.0]).unwrap(), &[1.0, 1.0]);
        assert!(solve(Matrix::new(2, 2, vec![1.0, 2.0, 2.0, 4.0]), vec![1.0, 1.0]).is_none());
    }

    #[test]
    fn products_and_factors_agree() {
        let a = random(3, 4, 1);
        close(
            &a.times(&random(4, 2, 2)).transposed().entries,
            &random(4, 2, 2).transposed().times(&a.transposed()).entries,
        );
        let positive = a.sandwich(&Matrix::scaled_identity(4, 2.0));
        let lower = positive.cholesky().unwrap();
        close(&lower.times(&lower.transposed()).entries, &positive.entries);
        close(
            &invert_lower(&lower).times(&lower).entries,
            &Matrix::scaled_identity(3, 1.0).entries,
        );
        assert!(Matrix::new(2, 2, vec![1.0, 2.0, 2.0, 1.0]).cholesky().is_none());
    }
}

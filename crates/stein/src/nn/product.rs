//! The one matrix product that all passes of a network are made of.
//!
//! ```text
//! C[r][j]  =  (C[r][j] +)  Σ_k  W(r, k) · X[k][j]        W(r, k) = w[r·row + k·column]
//! ```
//!
//! X and C are stored row after row; W is read by two strides, so that it may be transposed. Vectors run along j. All of
//! X that a register tile needs stays in the first-level cache; nothing is packed and nothing is allocated. The `gemm`
//! crate allocates on every call; at these sizes the two are about equally fast (`examples/product_speed.rs` compares).

use pulp::{Simd, WithSimd};

use super::Real;

/// Widest vector in use, in `f32`s. Rows of X are readable up to a multiple of it.
pub const LANES: usize = 16;

/// Rounds up to a multiple of [`LANES`].
pub const fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// The operands of a product, all but C.
#[derive(Clone, Copy)]
pub struct Product<'a, T> {
    /// Rows of C and of W.
    pub rows: usize,
    /// Columns of W, rows of X.
    pub depth: usize,
    /// Columns of C and of X.
    pub columns: usize,
    /// W.
    pub w: &'a [T],
    /// Step in `w` from one row of W to the next.
    pub w_row: usize,
    /// Step in `w` from one column of W to the next.
    pub w_column: usize,
    /// X; its last row too is readable up to `padded(columns)`.
    pub x: &'a [T],
    /// Step in `x` from one row to the next, at least `padded(columns)`.
    pub x_row: usize,
    /// Step in C from one row to the next, at least `columns`.
    pub c_row: usize,
    /// Whether the product is added to C or replaces it.
    pub accumulate: bool,
}

impl<T: Real> Product<'_, T> {
    /// Panics unless every element that will be touched is within its slice.
    fn check(&self, c: &[T]) {
        if self.rows == 0 || self.columns == 0 {
            return;
        }
        assert!(self.c_row >= self.columns && self.x_row >= padded(self.columns));
        assert!(c.len() >= (self.rows - 1) * self.c_row + self.columns);
        if self.depth > 0 {
            assert!(self.w.len() > (self.rows - 1) * self.w_row + (self.depth - 1) * self.w_column);
            assert!(self.x.len() >= (self.depth - 1) * self.x_row + padded(self.columns));
        }
    }
}

/// The product, written out: for `f64`, and what [`simd`] is tested against.
pub fn plain<T: Real>(product: Product<'_, T>, c: &mut [T]) {
    product.check(c);
    for r in 0..product.rows {
        let row = &mut c[r * product.c_row..][..product.columns];
        if !product.accumulate {
            row.fill(T::ZERO);
        }
        for k in 0..product.depth {
            let w = product.w[r * product.w_row + k * product.w_column];
            for (c, &x) in row.iter_mut().zip(&product.x[k * product.x_row..]) {
                *c += w * x;
            }
        }
    }
}

/// The product for `f32`, on the widest vectors of this processor.
pub fn simd(product: Product<'_, f32>, c: &mut [f32]) {
    product.check(c);
    pulp::Arch::new().dispatch(Tiled { product, c });
}

struct Tiled<'a> {
    product: Product<'a, f32>,
    c: &'a mut [f32],
}

/// Rows of a register tile.
const TILE_ROWS: usize = 6;

impl WithSimd for Tiled<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Product { rows, columns, .. } = self.product;
        // 6 × 4 accumulators fill the 32 registers of AVX-512, 6 × 2 the 16 of AVX2.
        let widest = if S::F32_LANES >= 16 { 4 } else { 2 };
        let vectors = columns.div_ceil(S::F32_LANES);
        let c = self.c.as_mut_ptr();
        let mut vector = 0;
        while vector < vectors {
            let width = widest.min(vectors - vector);
            let mut row = 0;
            while row < rows {
                let height = TILE_ROWS.min(rows - row);
                // SAFETY: `check` has bounded every element of C, W and X that the tiles touch.
                unsafe {
                    match width {
                        4 => tile_rows::<S, 4>(simd, &self.product, c, row, height, vector),
                        3 => tile_rows::<S, 3>(simd, &self.product, c, row, height, vector),
                        2 => tile_rows::<S, 2>(simd, &self.product, c, row, height, vector),
                        _ => tile_rows::<S, 1>(simd, &self.product, c, row, height, vector),
                    }
                }
                row += height;
            }
            vector += width;
        }
    }
}

#[inline(always)]
unsafe fn tile_rows<S: Simd, const V: usize>(
    simd: S,
    product: &Product<'_, f32>,
    c: *mut f32,
    row: usize,
    height: usize,
    vector: usize,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        match height {
            6 => tile::<S, 6, V>(simd, product, c, row, vector),
            5 => tile::<S, 5, V>(simd, product, c, row, vector),
            4 => tile::<S, 4, V>(simd, product, c, row, vector),
            3 => tile::<S, 3, V>(simd, product, c, row, vector),
            2 => tile::<S, 2, V>(simd, product, c, row, vector),
            _ => tile::<S, 1, V>(simd, product, c, row, vector),
        }
    }
}

/// R rows × V vectors of C, held in registers while k runs.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    product: &Product<'_, f32>,
    c: *mut f32,
    row: usize,
    vector: usize,
) {
    // SAFETY: the caller has bounded rows row..row+R, all k and vectors vector..vector+V (X readable to `padded`).
    unsafe {
        let start = vector * S::F32_LANES;
        let w = product.w.as_ptr().add(row * product.w_row);
        let x = product.x.as_ptr().add(start);
        let c = c.add(row * product.c_row + start);
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for k in 0..product.depth {
            let mut lane = [simd.splat_f32s(0.0); V];
            for (v, lane) in lane.iter_mut().enumerate() {
                *lane = x
                    .add(k * product.x_row + v * S::F32_LANES)
                    .cast::<S::f32s>()
                    .read_unaligned();
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let weight = simd.splat_f32s(*w.add(r * product.w_row + k * product.w_column));
                for (sum, &lane) in sums.iter_mut().zip(&lane) {
                    *sum = simd.mul_add_f32s(weight, lane, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                let place = c.add(r * product.c_row + v * S::F32_LANES);
                let left = product.columns - start - v * S::F32_LANES;
                if left >= S::F32_LANES {
                    let place = place.cast::<S::f32s>();
                    if product.accumulate {
                        place.write_unaligned(simd.add_f32s(place.read_unaligned(), sum));
                    } else {
                        place.write_unaligned(sum);
                    }
                } else {
                    let place = std::slice::from_raw_parts_mut(place, left);
                    let sum = if product.accumulate {
                        simd.add_f32s(simd.partial_load_f32s(place), sum)
                    } else {
                        sum
                    };
                    simd.partial_store_f32s(place, sum);
                }
            }
        }
    }
}

/// `to[b·to_row + f] = from[f·from_row + b]` for `rows` features f and `columns` samples b.
pub fn transpose<T: Real>(from: &[T], from_row: usize, rows: usize, columns: usize, to: &mut [T], to_row: usize) {
    const BLOCK: usize = 8;
    super::real::dispatch(
        #[inline(always)]
        || {
            let mut first = 0;
            while first < rows {
                let height = BLOCK.min(rows - first);
                if height == BLOCK {
                    let row: [&[T]; BLOCK] = std::array::from_fn(|r| &from[(first + r) * from_row..][..columns]);
                    for b in 0..columns {
                        let out: &mut [T; BLOCK] = (&mut to[b * to_row + first..][..BLOCK])
                            .try_into()
                            .expect("a block has BLOCK elements");
                        for r in 0..BLOCK {
                            out[r] = row[r][b];
                        }
                    }
                } else {
                    for f in first..rows {
                        for b in 0..columns {
                            to[b * to_row + f] = from[f * from_row + b];
                        }
                    }
                }
                first += height;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    #[test]
    fn vectors_agree_with_the_plain_product_at_odd_sizes() {
        let mut random = stream(7, Purpose::PolicyInit, 0, 0);
        for (rows, depth, columns) in [
            (1, 1, 1),
            (6, 23, 64),
            (100, 100, 512),
            (7, 5, 17),
            (13, 64, 33),
            (64, 64, 64),
            (3, 9, 130),
            (100, 48, 23),
        ] {
            for transposed in [false, true] {
                for accumulate in [false, true] {
                    let (w_row, w_column) = if transposed { (1, rows) } else { (depth, 1) };
                    let x_row = padded(columns) + 16;
                    let c_row = columns + 3;
                    let w: Vec<f32> = (0..rows * depth).map(|_| random.random_range(-1.0..1.0)).collect();
                    let x: Vec<f32> = (0..depth * x_row).map(|_| random.random_range(-1.0..1.0)).collect();
                    let before: Vec<f32> = (0..rows * c_row).map(|_| random.random_range(-1.0..1.0)).collect();
                    let product = Product {
                        rows,
                        depth,
                        columns,
                        w: &w,
                        w_row,
                        w_column,
                        x: &x,
                        x_row,
                        c_row,
                        accumulate,
                    };
                    let (mut fast, mut slow) = (before.clone(), before.clone());
                    simd(product, &mut fast);
                    plain(product, &mut slow);
                    for (index, (fast, slow)) in fast.iter().zip(&slow).enumerate() {
                        assert!(
                            (fast - slow).abs() < 1e-4,
                            "{rows}×{depth}×{columns} at {index}: {fast} {slow}"
                        );
                        if index % c_row >= columns {
                            assert_eq!(*fast, before[index], "wrote past the end of a row");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn transposes_exactly() {
        let (rows, columns, from_row, to_row) = (23, 50, 64, 32);
        let from: Vec<f32> = (0..rows * from_row).map(|value| value as f32).collect();
        let mut to = vec![-1.0; columns * to_row];
        transpose(&from, from_row, rows, columns, &mut to, to_row);
        for b in 0..columns {
            for f in 0..to_row {
                let expected = if f < rows { from[f * from_row + b] } else { -1.0 };
                assert_eq!(to[b * to_row + f], expected);
            }
        }
    }
}

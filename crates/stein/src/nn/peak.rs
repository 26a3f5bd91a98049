//! The yardstick: how fast one large single-precision matrix product runs on this machine, with the `gemm` crate.

use std::time::Instant;

use gemm::Parallelism;

/// GFLOP/s of the best of several 1,536³ products on `threads` threads of the current rayon pool.
pub fn sgemm_peak_gflops(threads: usize) -> f64 {
    const SIZE: usize = 1536;
    let a: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 17) as f32 * 0.1).collect();
    let b: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 13) as f32 * 0.1).collect();
    let mut c = vec![0.0f32; SIZE * SIZE];
    let parallelism = if threads == 1 {
        Parallelism::None
    } else {
        Parallelism::Rayon(threads)
    };
    let mut best = f64::INFINITY;
    for _ in 0..6 {
        let start = Instant::now();
        let (row, column) = (1, SIZE as isize);
        // SAFETY: the three matrices hold SIZE·SIZE elements each, in the strides given, and do not overlap.
        unsafe {
            gemm::gemm(
                SIZE,
                SIZE,
                SIZE,
                c.as_mut_ptr(),
                column,
                row,
                false,
                a.as_ptr(),
                column,
                row,
                b.as_ptr(),
                column,
                row,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * (SIZE as f64).powi(3) / best / 1e9
}

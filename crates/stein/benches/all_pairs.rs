//! The all-pairs ratio update against one large sgemm of the `gemm` crate, in the same run.

mod support;

use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use stein::nn::peak::sgemm_peak_gflops;
use support::AllPairs;

fn all_pairs(criterion: &mut Criterion) {
    let mut pairs = AllPairs::new(90, 23);
    let mut group = criterion.benchmark_group("all_pairs");
    group.sample_size(10);
    group.bench_function("DualDICE, 90 × {23-100-100-1}, 8 × 512", |bencher| {
        bencher.iter(|| pairs.update())
    });
    group.finish();

    let threads = rayon::current_num_threads();
    let (mut best, mut peak) = (f64::INFINITY, 0.0f64);
    // Alternate the two, so that a noisy neighbour meets both.
    for _ in 0..5 {
        let start = Instant::now();
        pairs.update();
        best = best.min(start.elapsed().as_secs_f64());
        peak = peak.max(sgemm_peak_gflops(threads));
    }
    let speed = pairs.flops() / best / 1e9;
    println!(
        "all pairs: {:.0} ms, {speed:.0} GFLOP/s; one large sgemm: {peak:.0} GFLOP/s; share {:.0} % on {threads} threads",
        best * 1e3,
        100.0 * speed / peak
    );
}

criterion_group!(benches, all_pairs);
criterion_main!(benches);

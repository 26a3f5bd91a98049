//! The product kernel beside the `gemm` crate on the products that the networks are made of, on one thread, with the
//! allocations of each call: `cargo run --release -p stein --example product_speed`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gemm::Parallelism;
use stein::nn::peak::sgemm_peak_gflops;
use stein::nn::product::{Product, padded, simd};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is multiplied, rows, depth, columns, and whether W is read transposed.
const PRODUCTS: [(&str, usize, usize, usize, bool); 6] = [
    ("ratio network, layer 1, forward", 100, 23, 512, false),
    ("ratio network, layer 2, forward", 100, 100, 512, false),
    ("ratio network, layer 2, to h", 100, 100, 512, true),
    ("ratio network, layer 2, to W", 100, 512, 100, false),
    ("maze policy, layer 1, forward", 64, 4, 64, false),
    ("maze policy, layer 2, forward", 64, 64, 64, false),
];

fn main() {
    println!("GFLOP/s (allocations a call)            rows depth columns       own         gemm");
    for (name, rows, depth, columns, transposed) in PRODUCTS {
        let (w_row, w_column) = if transposed { (1, rows) } else { (depth, 1) };
        // An odd number of cache lines a row, as in the networks' buffers.
        let row = padded(columns) + if padded(columns).is_multiple_of(32) { 16 } else { 0 };
        let (w, x) = (vec![0.5f32; rows * depth], vec![0.25f32; depth * row]);
        let mut c = vec![0.0f32; rows * row];
        let work = 2.0 * (rows * depth * columns) as f64;
        let product = Product {
            rows,
            depth,
            columns,
            w: &w,
            w_row,
            w_column,
            x: &x,
            x_row: row,
            c_row: row,
            accumulate: false,
        };
        let own = speed(work, || simd(product, &mut c));
        let strides = [row, w_row, w_column].map(|stride| stride as isize);
        let general = speed(work, || {
            let [row, w_row, w_column] = strides;
            let (c, w, x) = (c.as_mut_ptr(), w.as_ptr(), x.as_ptr());
            // SAFETY: the slices hold what these sizes and strides reach, and do not overlap.
            unsafe {
                gemm::gemm(
                    rows,
                    columns,
                    depth,
                    c,
                    1,
                    row,
                    false,
                    w,
                    w_column,
                    w_row,
                    x,
                    1,
                    row,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::None,
                );
            }
        });
        println!(
            "{name:38}  {rows:4} {depth:5} {columns:7}  {:4.0} ({:.0})     {:4.0} ({:.0})",
            own.0, own.1, general.0, general.1
        );
    }
    println!("one large product, gemm: {:.0}", sgemm_peak_gflops(1));
}

/// GFLOP/s of the best of several rounds, and allocations a call.
fn speed(work: f64, mut call: impl FnMut()) -> (f64, f64) {
    let calls = (1e9 / work) as usize;
    let (mut best, mut allocations) = (0.0f64, 0);
    for _ in 0..7 {
        let (before, start) = (ALLOCATIONS.load(Ordering::Relaxed), Instant::now());
        (0..calls).for_each(|_| call());
        best = best.max(work * calls as f64 / start.elapsed().as_secs_f64() / 1e9);
        allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    }
    (best, allocations as f64 / calls as f64)
}

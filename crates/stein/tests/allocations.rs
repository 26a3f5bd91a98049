//! The minibatch loop of the all-pairs update allocates nothing: counted by the allocator itself.

#[path = "../benches/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

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
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    work();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn minibatches_allocate_nothing() {
    assert_eq!(
        count(|| drop(std::hint::black_box(vec![1u8; 100]))),
        1,
        "the counter counts"
    );
    let threads = stein::parallel::Threads::new(1).unwrap();
    threads.run(|| {
        let mut pairs = support::AllPairs::new(3, 23);
        pairs.update();
        // What is left are the lists of the members of both stacks, outside of the loop over members and minibatches.
        let per_update = count(|| pairs.update());
        assert!(
            per_update <= 2,
            "{per_update} allocations in {} minibatches",
            3 * support::MINIBATCHES
        );
        assert!(pairs.flops() > 0.0);
    });
}

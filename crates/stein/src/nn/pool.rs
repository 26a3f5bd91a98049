//! Buffers that parallel tasks borrow and give back, so that the inner loops allocate nothing.

use std::sync::Mutex;

/// A pool of interchangeable buffers. It grows to the number of tasks that run at once, then allocates no more.
pub struct Pool<S> {
    free: Mutex<Vec<S>>,
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Pool {
            free: Mutex::new(Vec::new()),
        }
    }
}

impl<S: Send> Pool<S> {
    /// Runs `work` with a buffer of its own, made by `make` where none is free.
    pub fn with<R>(&self, make: impl FnOnce() -> S, work: impl FnOnce(&mut S) -> R) -> R {
        // A poisoned lock only means that another task panicked; the buffers in the list are whole.
        let free = || self.free.lock().unwrap_or_else(|lock| lock.into_inner());
        let taken = free().pop();
        let mut buffer = taken.unwrap_or_else(make);
        let result = work(&mut buffer);
        free().push(buffer);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn buffers_are_used_again() {
        let made = AtomicUsize::new(0);
        let make = || made.fetch_add(1, Ordering::Relaxed);
        let pool = Pool::default();
        for _ in 0..5 {
            pool.with(make, |_| pool.with(make, |_| ()));
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }
}

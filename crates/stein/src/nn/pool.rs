//! Buffers that parallel tasks borrow and give back, so that the inner loops allocate nothing.

use std::sync::Mutex;

/// A pool of interchangeable buffers. It grows to the number of tasks that run at once, then allocates no more.
pub struct Pool<S> {
    make: Box<dyn Fn() -> S + Send + Sync>,
    free: Mutex<Vec<S>>,
}

impl<S: Send> Pool<S> {
    /// A pool whose buffers are made by `make`.
    pub fn new(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Pool {
            make: Box::new(make),
            free: Mutex::new(Vec::new()),
        }
    }

    /// Runs `work` with a buffer of its own.
    pub fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        // A poisoned lock only means that another task panicked; the buffers in the list are whole.
        let mut buffer = self
            .free
            .lock()
            .unwrap_or_else(|lock| lock.into_inner())
            .pop()
            .unwrap_or_else(|| (self.make)());
        let result = work(&mut buffer);
        self.free.lock().unwrap_or_else(|lock| lock.into_inner()).push(buffer);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn buffers_are_used_again() {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = made.clone();
        let pool = Pool::new(move || counter.fetch_add(1, Ordering::Relaxed));
        for _ in 0..5 {
            pool.with(|_| pool.with(|_| ()));
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }
}

//! Where work is spread over cores: for each policy, pair or network, in order. The only module that knows rayon.
//!
//! Every part of the work writes to what is its own, and results come back in the order of the parts. So the number of threads
//! never changes a bit. This is also where processes of several machines would divide the work among themselves.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Something that falls into parts which can be worked on at the same time.
///
/// Implemented for ranges of numbers, for slices (a part is an element), for [`chunks`], and for tuples of these, whose parts
/// are tuples. All members of a tuple have the same number of parts.
pub trait Parts: Sized {
    /// One part.
    type Part: Send;

    /// The parts, for this module's own use.
    fn parts(self) -> impl IndexedParallelIterator<Item = Self::Part>;
}

impl Parts for Range<usize> {
    type Part = usize;

    fn parts(self) -> impl IndexedParallelIterator<Item = usize> {
        self.into_par_iter()
    }
}

impl<'a, T: Sync> Parts for &'a [T] {
    type Part = &'a T;

    fn parts(self) -> impl IndexedParallelIterator<Item = &'a T> {
        self.par_iter()
    }
}

impl<'a, T: Send> Parts for &'a mut [T] {
    type Part = &'a mut T;

    fn parts(self) -> impl IndexedParallelIterator<Item = &'a mut T> {
        self.par_iter_mut()
    }
}

impl<T: Send> Parts for Vec<T> {
    type Part = T;

    fn parts(self) -> impl IndexedParallelIterator<Item = T> {
        self.into_par_iter()
    }
}

/// A slice in equal chunks.
pub struct Chunks<'a, T> {
    values: &'a mut [T],
    size: usize,
}

/// A slice in chunks of `size` each, which are the parts.
pub fn chunks<T>(values: &mut [T], size: usize) -> Chunks<'_, T> {
    Chunks { values, size }
}

impl<'a, T: Send> Parts for Chunks<'a, T> {
    type Part = &'a mut [T];

    fn parts(self) -> impl IndexedParallelIterator<Item = &'a mut [T]> {
        self.values.par_chunks_exact_mut(self.size)
    }
}

impl<A: Parts, B: Parts> Parts for (A, B) {
    type Part = (A::Part, B::Part);

    fn parts(self) -> impl IndexedParallelIterator<Item = Self::Part> {
        self.0.parts().zip(self.1.parts())
    }
}

impl<A: Parts, B: Parts, C: Parts> Parts for (A, B, C) {
    type Part = (A::Part, B::Part, C::Part);

    fn parts(self) -> impl IndexedParallelIterator<Item = Self::Part> {
        let parts = self.0.parts().zip(self.1.parts()).zip(self.2.parts());
        parts.map(|((a, b), c)| (a, b, c))
    }
}

/// Works on every part; results in the order of the parts. `work` gets the number of the part and the part.
pub fn map<P: Parts, R: Send>(parts: P, work: impl Fn(usize, P::Part) -> R + Sync + Send) -> Vec<R> {
    let numbered = parts.parts().enumerate();
    numbered.map(|(number, part)| work(number, part)).collect()
}

/// Works on every part, without results and without allocating.
pub fn for_each<P: Parts>(parts: P, work: impl Fn(usize, P::Part) + Sync + Send) {
    let numbered = parts.parts().enumerate();
    numbered.for_each(|(number, part)| work(number, part));
}

/// Does two things, at the same time where there is a core for each.
pub fn join<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    rayon::join(one, other)
}

/// Threads that work is spread over here and now.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// A number of threads of one's own.
pub struct Threads(rayon::ThreadPool);

impl Threads {
    /// Starts them.
    pub fn new(number: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(number).build();
        pool.map(Threads)
            .map_err(|error| Error::failed(format!("cannot start {number} threads: {error}")))
    }

    /// Does `work`, spread over these threads.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_parts() {
        let mut values: Vec<usize> = (0..60).collect();
        let mut flags = [false; 20];
        let sums = Threads::new(3).unwrap().run(|| {
            assert_eq!(threads(), 3);
            map((chunks(&mut values, 3), &mut flags[..]), |number, (chunk, flag)| {
                *flag = true;
                chunk.iter_mut().for_each(|x| *x += 1);
                (number, chunk.iter().sum::<usize>())
            })
        });
        assert_eq!(sums[7], (7, 22 + 23 + 24));
        assert!(sums.iter().enumerate().all(|(k, (number, _))| k == *number));
        assert!(flags.iter().all(|flag| *flag) && values[59] == 60);
        assert_eq!(map(0..4, |_, i| i * i), [0, 1, 4, 9]);
        assert_eq!(join(|| 1, || 2), (1, 2));
    }
}

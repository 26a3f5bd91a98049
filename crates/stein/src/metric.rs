//! Metrics: the numbers of an iteration, as named values. Each is listed beside the code that computes it; docs/metrics.md,
//! which defines them in full, is checked against the lists.

/// One number of every iteration: a column of metrics.csv and a scalar of TensorBoard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// The group that TensorBoard shows it in.
    pub group: &'static str,
    /// What it is, in the words of docs/metrics.md.
    pub meaning: &'static str,
}

impl Metric {
    /// A metric.
    pub const fn new(name: &'static str, group: &'static str, meaning: &'static str) -> Self {
        Metric { name, group, meaning }
    }

    /// One of how different policies are, and why: most of those of methods.
    pub const fn of_diversity(name: &'static str, meaning: &'static str) -> Self {
        Metric::new(name, "diversity", meaning)
    }
}

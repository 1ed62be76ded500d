//! The questions. To add one: a file with a constant [`Experiment`] and its functions, a line in [`ALL`], and a line in the help.

mod backends;
mod choosing;
mod churn;
pub(crate) mod false_positives;
mod growth;
mod inserts;
mod keys;
mod latency;
mod lookups;
pub(crate) mod relocations;
mod removes;
pub(crate) mod snapshots;
mod threads;

use crate::{lab::Lab, measurement::Measurement, options::Settings};

/// A question, how it is measured, and how the answer is shown.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// As options and records name it.
    pub name: &'static str,
    /// The heading of its section.
    pub title: &'static str,
    /// What is measured and how, for the report.
    pub explanation: &'static str,
    /// About how many of [`Lab::step`] it will take: the progress bar lives on it.
    pub steps: fn(&Settings) -> u64,
    /// Measures.
    pub run: fn(&mut Lab<'_>),
    /// Its tables, from its own records.
    pub render: fn(&[&Measurement]) -> String,
}

/// All, in the order of the report.
pub const ALL: &[Experiment] = &[
    lookups::EXPERIMENT,
    backends::EXPERIMENT,
    keys::EXPERIMENT,
    inserts::EXPERIMENT,
    removes::EXPERIMENT,
    threads::EXPERIMENT,
    churn::EXPERIMENT,
    latency::EXPERIMENT,
    relocations::EXPERIMENT,
    false_positives::EXPERIMENT,
    growth::EXPERIMENT,
    snapshots::EXPERIMENT,
    choosing::EXPERIMENT,
];

/// The names of what is ours, too, though not in the registry of filters.
pub fn own_names() -> Vec<&'static str> {
    koel::Backend::ALL
        .into_iter()
        .map(backends::name)
        .chain(growth::NAMES)
        .chain(snapshots::NAMES)
        .chain(choosing::NAMES)
        .collect()
}

/// Those that the settings name.
pub fn chosen(settings: &Settings) -> impl Iterator<Item = &'static Experiment> {
    ALL.iter().filter(|experiment| settings.experiments.contains(&experiment.name))
}

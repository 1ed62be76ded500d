//! What every experiment produces: records of one kind, each with its samples, their median and their spread.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The name under which the best way of reading one word per key stands.
pub const LIMIT_ONE: &str = "limit, 1 read";
/// The same with two words.
pub const LIMIT_TWO: &str = "limit, 2 reads";

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Million operations per second.
    #[serde(rename = "Mops/s")]
    Mops,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A share, 0 to 1.
    #[serde(rename = "share")]
    Share,
    /// Events for each key.
    #[serde(rename = "per key")]
    PerKey,
    /// Bits for each key.
    #[serde(rename = "bits per key")]
    BitsPerKey,
    /// 10^9 bytes per second.
    #[serde(rename = "GB/s")]
    Gigabytes,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// What was done, such as `look-up`.
    pub operation: String,
    /// Name of the filter, or [`LIMIT_ONE`] or [`LIMIT_TWO`].
    pub peer: String,
    /// Size of the table.
    pub bytes: u64,
    /// Percent of the slots that were taken (at the end of an interval).
    pub load: u32,
    /// Percent of look-ups that were of present keys.
    pub hits: Option<u32>,
    /// How keys were chosen.
    pub order: &'static str,
    /// Threads at work.
    pub threads: usize,
    /// What the numbers are.
    pub unit: Unit,
    /// The middle of the samples.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// The first quartile.
    pub lower: f64,
    /// The third quartile.
    pub upper: f64,
    /// The greatest of them.
    pub max: f64,
    /// One for each round.
    pub samples: Vec<f64>,
    /// The median over that of the best filter that is not ours, in the same case.
    pub to_best_peer: Option<f64>,
    /// The same with the best of those that delete, too.
    pub to_best_deleting: Option<f64>,
    /// The median over that of [`LIMIT_ONE`], in the same case.
    pub to_limit: Option<f64>,
    /// Whatever else has to be said.
    pub note: Option<String>,
}

impl Measurement {
    /// A record without samples: random keys, one thread, million operations per second.
    pub fn new(experiment: &'static str, operation: impl Into<String>, peer: impl Into<String>) -> Self {
        Self {
            experiment,
            operation: operation.into(),
            peer: peer.into(),
            bytes: 0,
            load: 0,
            hits: None,
            order: "random",
            threads: 1,
            unit: Unit::Mops,
            median: f64::NAN,
            min: f64::NAN,
            lower: f64::NAN,
            upper: f64::NAN,
            max: f64::NAN,
            samples: Vec::new(),
            to_best_peer: None,
            to_best_deleting: None,
            to_limit: None,
            note: None,
        }
    }

    /// With the size of the table and its load.
    #[must_use]
    pub fn table(self, bytes: u64, load: u32) -> Self {
        Self { bytes, load, ..self }
    }

    /// With the share of hits.
    #[must_use]
    pub fn hits(self, hits: u32) -> Self {
        Self { hits: Some(hits), ..self }
    }

    /// With the number of threads.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// With another unit.
    #[must_use]
    pub fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// With the order of keys.
    #[must_use]
    pub fn order(self, order: &'static str) -> Self {
        Self { order, ..self }
    }

    /// With something that has to be said.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// With its samples, and what follows from them.
    #[must_use]
    pub fn samples(self, samples: Vec<f64>) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: quantile(&sorted, 0.5),
            min: quantile(&sorted, 0.0),
            lower: quantile(&sorted, 0.25),
            upper: quantile(&sorted, 0.75),
            max: quantile(&sorted, 1.0),
            samples,
            ..self
        }
    }

    /// Whether there is a figure.
    pub fn is_measured(&self) -> bool {
        self.median.is_finite()
    }

    /// Whether the other was measured in the same case, so that the two compare.
    pub fn same_case(&self, other: &Self) -> bool {
        let case = |one: &Self| (one.experiment, one.bytes, one.load, one.hits, one.order, one.threads, one.unit);
        case(self) == case(other) && self.operation == other.operation
    }

    /// Whether this is a limit, no filter.
    pub fn is_limit(&self) -> bool {
        self.peer == LIMIT_ONE || self.peer == LIMIT_TWO
    }
}

/// A quantile of sorted samples, between two of them if need be; NaN of none.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = last as f64 * part;
    let below = sorted[at.floor() as usize];
    let above = sorted[at.ceil() as usize];
    below + (above - below) * at.fract()
}

/// Fills in how each throughput compares with the best peer, the best that deletes, and the limit of its case.
pub fn compare(measurements: &mut [Measurement], ours: &[&str], deleting: &[&str]) {
    let ratios: Vec<_> = measurements
        .iter()
        .map(|one| {
            if one.unit != Unit::Mops || !one.is_measured() {
                return [None; 3];
            }
            let case = || measurements.iter().filter(|other| one.same_case(other) && other.is_measured());
            let peers = || case().filter(|other| !other.is_limit() && !ours.contains(&other.peer.as_str()));
            let deleting = peers().filter(|other| deleting.contains(&other.peer.as_str()));
            let best = peers().map(|other| other.median).max_by(f64::total_cmp);
            let best_deleting = deleting.map(|other| other.median).max_by(f64::total_cmp);
            let limit = case().find(|other| other.peer == LIMIT_ONE).map(|other| other.median);
            [best, best_deleting, limit].map(|other| other.map(|other| one.median / other))
        })
        .collect();
    for (one, ratios) in measurements.iter_mut().zip(ratios) {
        [one.to_best_peer, one.to_best_deleting, one.to_limit] = ratios;
    }
}

/// How long something takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Million operations per second.
pub fn mops(operations: u64, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[3.0], 0.25), 3.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), 2.5);
        let measurement = Measurement::new("e", "o", "p").samples(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(
            (measurement.min, measurement.lower, measurement.median, measurement.upper, measurement.max),
            (1.0, 2.0, 3.0, 4.0, 5.0)
        );
        assert!(!Measurement::new("e", "o", "p").samples(Vec::new()).is_measured());
    }

    #[test]
    fn ratios_are_within_a_case() {
        let of = |peer: &str, load, figure| Measurement::new("e", "o", peer).table(8, load).samples(vec![figure]);
        let mut all =
            [of("koel", 50, 6.0), of("a", 50, 2.0), of("b", 50, 3.0), of(LIMIT_ONE, 50, 12.0), of("c", 75, 100.0)];
        compare(&mut all, &["koel"], &["koel", "a"]);
        assert_eq!((all[0].to_best_peer, all[0].to_best_deleting, all[0].to_limit), (Some(2.0), Some(3.0), Some(0.5)));
        assert_eq!((all[4].to_best_peer, all[4].to_limit), (Some(1.0), None));
    }

    #[test]
    fn throughput() {
        assert!((mops(2_000_000, Duration::from_secs(1)) - 2.0).abs() < 1e-12);
    }
}

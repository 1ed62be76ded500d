//! What is counted.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::{Result, guard::Reply, keys::Request};

/// What was seen: by one thread, or after [`add`](Self::add) by several.
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// How long the threads were replying, on the wall clock. Only known of all of them together.
    pub(crate) elapsed: Duration,
    /// Nanoseconds that each reply took.
    pub(crate) latency: Histogram<u64>,
    pub(crate) store_reads: u64,
    pub(crate) absent: u64,
    pub(crate) false_positives: u64,
    pub(crate) expected_false_positives: f64,
    /// How often the filter was asked for a key that is surely in, and how often it denied it.
    pub(crate) checks: u64,
    pub(crate) false_negatives: u64,
    /// Keys that were inserted, and deleted again.
    pub(crate) changed: u64,
}

impl Tally {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            requests: 0,
            elapsed: Duration::ZERO,
            latency: Histogram::new(3)?,
            store_reads: 0,
            absent: 0,
            false_positives: 0,
            expected_false_positives: 0.0,
            checks: 0,
            false_negatives: 0,
            changed: 0,
        })
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        self.requests += other.requests;
        self.elapsed += other.elapsed;
        self.latency.add(&other.latency)?;
        self.store_reads += other.store_reads;
        self.absent += other.absent;
        self.false_positives += other.false_positives;
        self.expected_false_positives += other.expected_false_positives;
        self.checks += other.checks;
        self.false_negatives += other.false_negatives;
        self.changed += other.changed;
        Ok(())
    }

    /// Compares a reply with what is known of the request. `rate` is the filter's false-positive rate, `None` without filter.
    pub(crate) fn reply(
        &mut self,
        request: &Request<'_>,
        reply: Reply,
        latency: Duration,
        rate: Option<f64>,
    ) -> Result<()> {
        self.requests += 1;
        self.latency.record(latency.as_nanos() as u64)?;
        if reply != Reply::FilterAbsent {
            self.store_reads += 1;
            if request.present != (reply == Reply::StoreHit) {
                return Err(format!("the store is wrong about {:?}", request.key).into());
            }
        }
        if !request.present {
            self.absent += 1;
        }
        if let Some(rate) = rate {
            if request.present {
                self.check(reply != Reply::FilterAbsent);
            } else {
                self.expected_false_positives += rate;
                self.false_positives += u64::from(reply == Reply::StoreMiss);
            }
        }
        Ok(())
    }

    /// Counts a look-up in the filter of a key that is surely in.
    pub(crate) fn check(&mut self, found: bool) {
        self.checks += 1;
        self.false_negatives += u64::from(!found);
    }
}

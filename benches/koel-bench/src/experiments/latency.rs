//! How long single calls take, one by one.

use std::{hint::black_box, time::Instant};

use hdrhistogram::Histogram;

use super::Experiment;
use crate::{
    keys::{self, LookUps},
    lab::{Lab, Subject},
    measurement::{Measurement, Unit},
    options::{Bytes, Settings},
    peers::Spec,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "latency",
    title: "Latency of single calls",
    explanation: "Nanoseconds of single calls, each timed by itself, at 90% load: look-ups (half hits), removals of keys in no order, inserts of new \
                  ones in their place. The clock takes its share, shown as the row \"clock alone\"; a call that is interrupted counts as it is, so \
                  the greatest values belong to the system.",
    steps,
    run,
    render,
};

/// The quantiles that are reported; the last is the greatest value.
pub(crate) const QUANTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max")];
/// The row of the clock.
pub(crate) const CLOCK: &str = "clock alone";
const LOAD: u32 = 90;

fn steps(settings: &Settings) -> u64 {
    settings.two_sizes().len() as u64 * settings.peers.len() as u64
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        lab.say(format!("latency, {}", Bytes(bytes)));
        let clock = timed((0..lab.settings.look_ups as u64).map(|number| move || number));
        record(lab, CLOCK, "look-up", bytes, &clock);
        for spec in lab.quick_specs(bytes).into_iter().filter(|spec| !spec.batched) {
            measure(lab, bytes, spec);
            lab.step();
        }
    }
}

fn measure(lab: &mut Lab<'_>, bytes: u64, spec: Spec) {
    let plan = lab.plan(bytes, LOAD);
    let Ok(mut subject) = Subject::filled(spec, &plan) else { return };
    let look_ups = LookUps::random(plan.keys, lab.settings.look_ups, 50, 1);
    let filter = &mut subject.filter;
    let histogram = timed(look_ups.hashes.iter().map(|hash| || filter.contains(*hash)));
    record(lab, spec.name, "look-up", bytes, &histogram);

    let changed = (plan.slots() / 20).min(lab.settings.look_ups as u64);
    // Keys sit in the table in no order, so taking them out in that of their insertion has no order either.
    let old: Vec<u64> = (0..changed).map(keys::present).collect();
    let new: Vec<u64> = (plan.keys..plan.keys + changed).map(keys::present).collect();
    if spec.removes {
        let (histogram, missed) = timed_if(&old, |hash| filter.remove(hash));
        record(lab, spec.name, "remove", bytes, &histogram);
        let place = format!("latency, removals, {}", Bytes(bytes));
        lab.check(spec.name, &place, keys::Answers { missed, ..Default::default() });
    }
    if !spec.fixed {
        // Refused inserts are not counted.
        let (histogram, _) = timed_if(&new, |hash| filter.insert(hash));
        record(lab, spec.name, "insert", bytes, &histogram);
    }
}

/// Up to a minute, three digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds")
}

/// Times each call by itself.
fn timed<T, C: FnOnce() -> T>(calls: impl Iterator<Item = C>) -> Histogram<u64> {
    let mut histogram = histogram();
    for call in calls {
        let start = Instant::now();
        black_box(call());
        histogram.saturating_record(start.elapsed().as_nanos() as u64);
    }
    histogram
}

/// Times each call that does what it should; how many did not.
fn timed_if(hashes: &[u64], mut call: impl FnMut(u64) -> bool) -> (Histogram<u64>, u64) {
    let (mut histogram, mut failed) = (histogram(), 0);
    for hash in hashes {
        let start = Instant::now();
        let done = black_box(call(*hash));
        let taken = start.elapsed();
        if done {
            histogram.saturating_record(taken.as_nanos() as u64);
        } else {
            failed += 1;
        }
    }
    (histogram, failed)
}

fn record(lab: &mut Lab<'_>, peer: &str, operation: &str, bytes: u64, histogram: &Histogram<u64>) {
    if histogram.is_empty() {
        return;
    }
    for (quantile, name) in QUANTILES {
        let value = histogram.value_at_quantile(quantile) as f64;
        let measurement = Measurement::new("latency", format!("{operation}, {name}"), peer).table(bytes, LOAD);
        lab.record(measurement.unit(Unit::Nanoseconds).samples(vec![value]));
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::grid(
        measurements,
        |one| format!("{}, {}", Bytes(one.bytes), one.operation.split(',').next().unwrap_or_default()),
        |one| one.operation.split(", ").nth(1).unwrap_or_default().to_string(),
    )
}

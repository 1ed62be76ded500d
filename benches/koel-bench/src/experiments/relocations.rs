//! What inserts do inside koel, and look-ups beside them, from its own statistics.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::Experiment;
use crate::{
    keys::{self, LookUps},
    lab::Lab,
    measurement::{Measurement, Unit},
    options::{Bytes, Settings},
    peers,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "relocations",
    title: "Inside inserts",
    explanation: "What koel counts while a table fills to 95% in steps of 5% of the slots, by single calls of each number of threads, with one more thread \
                  that looks up keys all the while, half of them absent. For each key that is inserted: fingerprints moved, searches for a path (inserts \
                  that met two full buckets), paths given up because another thread had changed a bucket on them, inserts refused, and compare-and-swaps \
                  done again because another thread was faster. For each look-up: how often it read both buckets again, because a fingerprint was taken \
                  meanwhile from a bucket of the same stripe.",
    steps,
    run,
    render,
};

const STEP: u32 = 5;
const END: u32 = 95;
/// The events, as records name them.
pub(crate) const EVENTS: [&str; 6] =
    [MOVED, "searches", "paths given up", "refusals", "CAS retries", "sequence retries per look-up"];
/// The first of them.
pub(crate) const MOVED: &str = "relocations";
/// Look-ups between two looks at whether the writers are done.
const LOOK_UPS: usize = 256;

fn steps(settings: &Settings) -> u64 {
    settings.two_sizes().len() as u64 * settings.threads.len() as u64
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        for threads in lab.settings.threads.clone() {
            lab.say(format!("inside inserts, {}, {threads} writers", Bytes(bytes)));
            fill(lab, bytes, threads);
            lab.step();
        }
    }
}

fn fill(lab: &mut Lab<'_>, bytes: u64, threads: usize) {
    let filter = peers::koel::table(&lab.plan(bytes, END), 4).expect("a table");
    let counts = || {
        let stats = filter.stats();
        [stats.relocations, stats.searches, stats.retries, stats.failures, stats.cas_retries, stats.sequence_retries]
    };
    let mut before = counts();
    for load in (STEP..=END).step_by(STEP as usize) {
        let (from, to) = (lab.plan(bytes, load - STEP).keys, lab.plan(bytes, load).keys);
        let share = (to - from).div_ceil(threads as u64);
        // Relaxed: the end of the scope orders what counts.
        let at_work = AtomicUsize::new(threads);
        let mut looked_up = 0;
        thread::scope(|scope| {
            for thread in 0..threads as u64 {
                let start = (from + thread * share).min(to);
                let (filter, at_work) = (&filter, &at_work);
                scope.spawn(move || {
                    for key in start..(start + share).min(to) {
                        // Refusals are among what is counted.
                        let _ = filter.insert_hash(keys::present(key));
                    }
                    at_work.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let look_ups = LookUps::random(from.max(1), 1 << 16, 50, u64::from(load));
            for hashes in look_ups.hashes.chunks(LOOK_UPS).cycle() {
                hashes.iter().for_each(|hash| _ = std::hint::black_box(filter.contains_hash(*hash)));
                looked_up += hashes.len() as u64;
                if at_work.load(Ordering::Relaxed) == 0 {
                    break;
                }
            }
        });
        let after = counts();
        let asked = [to - from; EVENTS.len() - 1].into_iter().chain([looked_up]);
        for (((event, before), after), asked) in EVENTS.into_iter().zip(before).zip(after).zip(asked) {
            let each = (after - before) as f64 / asked as f64;
            let measurement =
                Measurement::new("relocations", event, peers::koel::SINGLE).table(bytes, load).threads(threads);
            lab.record(measurement.unit(Unit::PerKey).samples(vec![each]));
        }
        before = after;
    }
}

/// The table and who filled it.
pub(crate) fn case(one: &Measurement) -> String {
    format!("{}, {} writer{}", Bytes(one.bytes), one.threads, if one.threads == 1 { "" } else { "s" })
}

fn render(measurements: &[&Measurement]) -> String {
    let shown: Vec<_> = measurements.iter().copied().filter(|one| one.load >= 70).collect();
    tables::rows_and_columns(&shown, case, |one| one.operation.clone(), |one| format!("{}%", one.load))
}

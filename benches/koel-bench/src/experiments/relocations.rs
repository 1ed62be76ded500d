//! What inserts do inside koel, from its own statistics.

use std::thread;

use super::Experiment;
use crate::{
    keys,
    lab::Lab,
    measurement::{Measurement, Unit},
    options::{Bytes, Settings},
    peers,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "relocations",
    title: "Inside inserts",
    explanation: "What koel counts while a table fills to 95%, for each key of a step of 5% of the slots: fingerprints moved, searches for a path (inserts \
                  that met two full buckets), paths given up because another thread had changed a bucket on them, and inserts refused. Single calls \
                  by each number of threads. (A compare-and-swap that is done again, and a look-up that reads again, are not counted by the filter; \
                  what they cost shows in the sections on threads.)",
    steps,
    run,
    render,
};

const STEP: u32 = 5;
const END: u32 = 95;
/// The events, as records name them.
const EVENTS: [&str; 4] = ["relocations", "searches", "paths given up", "refusals"];

fn steps(settings: &Settings) -> u64 {
    settings.two_sizes().len() as u64 * settings.threads.len() as u64
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        for threads in lab.settings.threads.clone() {
            lab.say(format!("inside inserts, {}, {threads} threads", Bytes(bytes)));
            fill(lab, bytes, threads);
            lab.step();
        }
    }
}

fn fill(lab: &mut Lab<'_>, bytes: u64, threads: usize) {
    let filter = peers::koel::table(&lab.plan(bytes, END), 4).expect("a table");
    let counts = || {
        let stats = filter.stats();
        [stats.relocations, stats.searches, stats.retries, stats.failures]
    };
    let mut before = counts();
    for load in (STEP..=END).step_by(STEP as usize) {
        let (from, to) = (lab.plan(bytes, load - STEP).keys, lab.plan(bytes, load).keys);
        let share = (to - from).div_ceil(threads as u64);
        thread::scope(|scope| {
            for thread in 0..threads as u64 {
                let start = (from + thread * share).min(to);
                let filter = &filter;
                scope.spawn(move || {
                    for key in start..(start + share).min(to) {
                        // Refusals are among what is counted.
                        let _ = filter.insert_hash(keys::present(key));
                    }
                });
            }
        });
        let after = counts();
        for ((event, before), after) in EVENTS.into_iter().zip(before).zip(after) {
            let each = (after - before) as f64 / (to - from) as f64;
            let measurement =
                Measurement::new("relocations", event, peers::koel::SINGLE).table(bytes, load).threads(threads);
            lab.record(measurement.unit(Unit::PerKey).samples(vec![each]));
        }
        before = after;
    }
}

fn render(measurements: &[&Measurement]) -> String {
    let shown: Vec<_> = measurements.iter().copied().filter(|one| one.load >= 70).collect();
    tables::rows_and_columns(
        &shown,
        |one| format!("{}, {} thread{}", Bytes(one.bytes), one.threads, if one.threads == 1 { "" } else { "s" }),
        |one| one.operation.clone(),
        |one| format!("{}%", one.load),
    )
}

//! Look-ups while another thread changes the table.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use super::Experiment;
use crate::{
    keys::{self, Answers, LookUps},
    lab::{Lab, Subject},
    measurement::{Measurement, mops, time},
    options::{Bytes, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "churn",
    title: "Look-ups beside a writer",
    explanation: "Million look-ups per second of one thread, half hits, at 90% load: with nobody else, and while another thread inserts and removes \
                  keys of its own without a pause. Keys that stay in have to be found. The writer's rate is that of its inserts and removals.",
    steps,
    run,
    render,
};

/// The records of a reader alone.
pub(crate) const IDLE: &str = "look-up, idle";
/// The records of a reader beside a writer.
pub(crate) const BESIDE: &str = "look-up beside a writer";
const WRITER: &str = "the writer's changes";
/// The load at which the writer works.
pub(crate) const LOAD: u32 = 90;
/// Keys of the writer that are in at a time; few, so that the load stays.
const WINDOW: u64 = 1024;
const OWN_KEYS: u64 = 1 << 41;

fn steps(settings: &Settings) -> u64 {
    settings.two_sizes().into_iter().map(|bytes| settings.rounds_for(bytes)).sum()
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        lab.say(format!("look-ups beside a writer, {}", Bytes(bytes)));
        let plan = lab.plan(bytes, LOAD);
        let specs = lab.specs(bytes).into_iter().filter(|spec| spec.shared && spec.removes);
        let mut subjects: Vec<_> = specs
            .filter_map(|spec| Subject::filled(spec, &plan).ok())
            .map(|subject| (subject, [const { Vec::<f64>::new() }; 3], Answers::default()))
            .collect();
        let (count, passes) = lab.sample(bytes);
        for round in 0..lab.settings.rounds_for(bytes) {
            let warm_up = LookUps::random(plan.keys, lab.warm_up(bytes), 50, 2 * round + 1);
            let look_ups = LookUps::random(plan.keys, count, 50, 2 * round + 2);
            for (subject, samples, answers) in &mut subjects {
                let idle = read(subject, &warm_up, &look_ups, passes, answers);
                let (beside, changes) = read_beside_a_writer(subject, &warm_up, &look_ups, passes, answers);
                for (samples, sample) in samples.iter_mut().zip([idle, beside, changes]) {
                    samples.push(sample);
                }
            }
            lab.step();
        }
        for (subject, samples, answers) in subjects {
            lab.check(subject.spec.name, &format!("beside a writer, {}", Bytes(bytes)), answers);
            for (operation, samples) in [IDLE, BESIDE, WRITER].into_iter().zip(samples) {
                let measurement = Measurement::new("churn", operation, subject.spec.name).table(bytes, LOAD).hits(50);
                lab.record(measurement.threads(if operation == IDLE { 1 } else { 2 }).samples(samples));
            }
        }
    }
}

fn read(subject: &Subject, warm_up: &LookUps, look_ups: &LookUps, passes: usize, answers: &mut Answers) -> f64 {
    let mut found = vec![false; warm_up.hashes.len().max(look_ups.hashes.len())];
    subject.filter.contains_many(&warm_up.hashes, &mut found[..warm_up.hashes.len()]);
    found.truncate(look_ups.hashes.len());
    let mut taken = std::time::Duration::ZERO;
    for _ in 0..passes {
        taken += time(|| subject.filter.contains_many(&look_ups.hashes, std::hint::black_box(&mut found)));
        // Each pass, not the last alone: what a writer does to one is another's luck.
        answers.add(look_ups.check(&found));
    }
    mops((passes * look_ups.hashes.len()) as u64, taken)
}

/// The reader's rate and the writer's.
fn read_beside_a_writer(
    subject: &Subject,
    warm_up: &LookUps,
    look_ups: &LookUps,
    passes: usize,
    answers: &mut Answers,
) -> (f64, f64) {
    let shared = subject.filter.shared().expect("only shared filters");
    let step = if subject.spec.batched { 64 } else { 1 };
    let stop = AtomicBool::new(false);
    let started = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    let hashes = |from: u64, count: u64| (from..from + count).map(keys::present).collect::<Vec<u64>>();
    let mut rate = 0.0;
    let mut taken = std::time::Duration::ZERO;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut at = OWN_KEYS;
            shared.insert_many(&hashes(at, WINDOW));
            // Relaxed: a signal to begin and one to end order nothing else.
            started.store(true, Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) {
                let done = shared.insert_many(&hashes(at + WINDOW, step)) + shared.remove_many(&hashes(at, step));
                changes.fetch_add(done as u64, Ordering::Relaxed);
                at += step;
            }
            shared.remove_many(&hashes(at, WINDOW));
        });
        while !started.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        taken = time(|| rate = read(subject, warm_up, look_ups, passes, answers));
        stop.store(true, Ordering::Relaxed);
    });
    (rate, mops(changes.load(Ordering::Relaxed), taken))
}

fn render(measurements: &[&Measurement]) -> String {
    let mut text = tables::grid(measurements, |one| Bytes(one.bytes).to_string(), |one| one.operation.clone());
    for one in measurements.iter().filter(|one| one.operation == BESIDE && one.is_measured()) {
        let idle = measurements.iter().find(|idle| {
            idle.operation == IDLE && (idle.bytes, &idle.peer) == (one.bytes, &one.peer) && idle.is_measured()
        });
        if let Some(idle) = idle {
            text += &format!("- {}, {}: {:.2} of idle\n", Bytes(one.bytes), one.peer, one.median / idle.median);
        }
    }
    text.push('\n');
    text
}

//! Removals by load.

use super::Experiment;
use crate::{
    keys::{self, Random},
    lab::{Lab, Subject},
    measurement::{Measurement, mops, time},
    options::{Bytes, Settings},
    peers::Spec,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "removes",
    title: "Removals",
    explanation: "Million removals per second of one thread, of up to a tenth of the slots' keys in no order, from the load down; they are put in again, \
                  uncounted, for the next round. Every key has to be found.",
    steps,
    run,
    render,
};

fn steps(settings: &Settings) -> u64 {
    settings.refillable_sizes().len() as u64 * settings.loads.len() as u64
}

/// The keys of a range in no order.
fn shuffled(from: u64, to: u64, seed: u64) -> Vec<u64> {
    let mut hashes: Vec<u64> = (from..to).map(keys::present).collect();
    let mut random = Random::new(seed);
    for last in (1..hashes.len()).rev() {
        hashes.swap(last, random.below(last as u64 + 1) as usize);
    }
    hashes
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.refillable_sizes() {
        let last = lab.plan(bytes, *lab.settings.loads.last().expect("at least one load"));
        let specs = lab.specs(bytes).into_iter().filter(|spec| spec.removes);
        let mut subjects: Vec<Subject> = specs.filter_map(|spec| Subject::empty(spec, &last).ok()).collect();
        for load in lab.settings.loads.clone() {
            lab.say(format!("removals, {}, {load}%: filling", Bytes(bytes)));
            subjects.retain_mut(|subject| is_filled(lab, subject, bytes, load));
            lab.say(format!("removals, {}, {load}%", Bytes(bytes)));
            subjects = case(lab, subjects, bytes, load);
            lab.step();
        }
    }
}

fn record(spec: &Spec, bytes: u64, load: u32) -> Measurement {
    Measurement::new("removes", "remove", spec.name).table(bytes, load)
}

/// Fills on to the load; whether the filter took it.
fn is_filled(lab: &mut Lab<'_>, subject: &mut Subject, bytes: u64, load: u32) -> bool {
    let plan = lab.plan(bytes, load);
    subject.fill(plan.keys);
    let full = subject.is_full_as_planned(&plan);
    if let Err(note) = &full {
        lab.record(record(&subject.spec, bytes, load).note(note));
    }
    full.is_ok()
}

/// Measures. Gives back those filters that took all keys again.
fn case(lab: &mut Lab<'_>, subjects: Vec<Subject>, bytes: u64, load: u32) -> Vec<Subject> {
    let plan = lab.plan(bytes, load);
    let removed = plan.keys.min(plan.slots() / 10).min(2 * lab.settings.look_ups as u64);
    let mut subjects: Vec<_> = subjects.into_iter().map(|subject| (subject, Vec::new(), true)).collect();
    for round in 0..lab.settings.rounds_for(bytes) {
        let hashes = shuffled(plan.keys - removed, plan.keys, round);
        for (subject, samples, _) in subjects.iter_mut().filter(|(.., whole)| *whole) {
            let mut found = 0;
            let taken = time(|| {
                // In chunks, like inserts: what a batch is given in one call is not the whole world.
                found = hashes.chunks(keys::CHUNK).map(|chunk| subject.filter.remove_many(chunk)).sum::<usize>();
            });
            samples.push(mops(found as u64, taken));
            let missed = (hashes.len() - found) as u64;
            let place = format!("removals, {} at {load}%", Bytes(bytes));
            lab.check(subject.spec.name, &place, keys::Answers { missed, ..Default::default() });
        }
        for (subject, _, whole) in subjects.iter_mut().filter(|(.., whole)| *whole) {
            let again: usize = hashes.chunks(keys::CHUNK).map(|chunk| subject.filter.insert_many(chunk)).sum();
            *whole = again == hashes.len();
        }
    }
    let mut left = Vec::new();
    for (subject, samples, whole) in subjects {
        lab.record(record(&subject.spec, bytes, load).samples(samples));
        if whole {
            left.push(subject);
        }
    }
    left
}

fn render(measurements: &[&Measurement]) -> String {
    tables::by_load(measurements, |one| Bytes(one.bytes).to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn shuffled_keys_are_all_there() {
        let mut hashes = super::shuffled(10, 1000, 3);
        let mut expected: Vec<u64> = (10..1000).map(crate::keys::present).collect();
        assert_ne!(hashes, expected);
        hashes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(hashes, expected);
    }
}

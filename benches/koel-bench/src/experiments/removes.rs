//! Removals by load.

use super::Experiment;
use crate::{
    keys::{self, Random},
    lab::{Lab, Subject},
    measurement::{Measurement, mops, time},
    options::{Bytes, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "removes",
    title: "Removals",
    explanation: "Million removals per second of one thread, of a tenth of the slots' keys in no order, from the load down; they are put in again, \
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
        for load in lab.settings.loads.clone() {
            case(lab, bytes, load);
            lab.step();
        }
    }
}

fn case(lab: &mut Lab<'_>, bytes: u64, load: u32) {
    let plan = lab.plan(bytes, load);
    lab.say(format!("removals, {}, {load}%: filling", Bytes(bytes)));
    let mut subjects = Vec::new();
    for spec in lab.specs(bytes).into_iter().filter(|spec| spec.removes) {
        match Subject::filled(spec, &plan) {
            Ok(subject) => subjects.push((subject, Vec::new())),
            Err(note) => lab.record(Measurement::new("removes", "remove", spec.name).table(bytes, load).note(note)),
        }
    }
    lab.say(format!("removals, {}, {load}%", Bytes(bytes)));
    let removed = plan.keys.min(plan.slots() / 10);
    for round in 0..lab.settings.rounds {
        let hashes = shuffled(plan.keys - removed, plan.keys, round);
        for (subject, samples) in &mut subjects {
            let mut found = 0;
            let taken = time(|| {
                // In chunks, like inserts: what a batch is given in one call is not the whole world.
                found = hashes.chunks(keys::CHUNK).map(|chunk| subject.filter.remove_many(chunk)).sum::<usize>();
            });
            samples.push(mops(found as u64, taken));
            let missed = (hashes.len() - found) as u64;
            lab.check(
                subject.spec.name,
                &format!("removals, {} at {load}%", Bytes(bytes)),
                keys::Answers { missed, ..Default::default() },
            );
            for chunk in hashes.chunks(keys::CHUNK) {
                subject.filter.insert_many(chunk);
            }
        }
    }
    for (subject, samples) in subjects {
        lab.record(Measurement::new("removes", "remove", subject.spec.name).table(bytes, load).samples(samples));
    }
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

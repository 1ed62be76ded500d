//! Look-ups of keys of other kinds than random ones.

use super::Experiment;
use crate::{
    keys::{self, LookUps, Order, Random},
    lab::{Contest, Lab, Placed, Subject},
    measurement::Measurement,
    options::{Bytes, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "keys",
    title: "Kinds of keys",
    explanation: "Look-ups of present keys at the highest load up to 90%: random ones; sequential integers in the order of their insertion (koel \
                  is given the integers themselves, as it mixes them; the others are given good hashes of them, and are not charged for it); and \
                  by Zipf's law with exponent 1, so that a few keys are asked for often.",
    steps,
    run,
    render,
};

const ORDERS: [Order; 3] = [Order::Random, Order::Sequential, Order::Zipf];

fn steps(settings: &Settings) -> u64 {
    let rounds: u64 = settings.two_sizes().into_iter().map(|bytes| settings.rounds_for(bytes)).sum();
    ORDERS.len() as u64 * rounds
}

fn run(lab: &mut Lab<'_>) {
    let load = lab.settings.usual_load();
    for bytes in lab.settings.two_sizes() {
        let plan = lab.plan(bytes, load);
        lab.say(format!("kinds of keys, {}", Bytes(bytes)));
        let subjects: Vec<Subject> =
            lab.quick_specs(bytes).into_iter().filter_map(|spec| Subject::filled(spec, &plan).ok()).collect();
        // The same tables, filled with integers where these do as hashes.
        let mut integers: Vec<Subject> = subjects
            .iter()
            .filter(|one| one.spec.ours)
            .filter_map(|one| Subject::empty(one.spec, &plan).ok())
            .collect();
        for subject in &mut integers {
            let hashes: Vec<u64> = (0..plan.keys).collect();
            subject.keys = hashes.chunks(keys::CHUNK).map(|chunk| subject.filter.insert_many(chunk) as u64).sum();
        }
        for order in ORDERS {
            contest(lab, order, bytes, load, &subjects, &integers);
        }
    }
}

fn contest(lab: &mut Lab<'_>, order: Order, bytes: u64, load: u32, subjects: &[Subject], integers: &[Subject]) {
    let keys = lab.plan(bytes, load).keys;
    let (count, passes) = lab.sample(bytes);
    let draw = |round: u64, count: usize| match order {
        Order::Random => LookUps::random(keys, count, 100, round),
        Order::Zipf => LookUps::zipf(keys, count, round),
        Order::Sequential => {
            let start = Random::new(round).below(keys);
            let indices = (0..count as u64).map(|index| (start + index) % keys);
            LookUps { hashes: indices.collect(), present: vec![true; count] }
        }
    };
    let hashed = |numbers: &LookUps| LookUps {
        hashes: numbers.hashes.iter().map(|number| keys::present(*number)).collect(),
        present: numbers.present.clone(),
    };
    let sequential = order == Order::Sequential;
    let mut contest = Contest::new(passes);
    for subject in subjects.iter().filter(|subject| !(sequential && subject.spec.ours)) {
        contest.add(subject.spec.name, |hashes, found| subject.filter.contains_many(hashes, found));
    }
    let mut of_integers = Contest::new(passes);
    for subject in integers.iter().filter(|_| sequential) {
        of_integers.add(subject.spec.name, |hashes, found| subject.filter.contains_many(hashes, found));
    }
    for round in 0..lab.settings.rounds_for(bytes) {
        let (warm_up, look_ups) = (draw(2 * round + 1, lab.warm_up(bytes)), draw(2 * round + 2, count));
        if sequential {
            contest.round(&hashed(&warm_up), &[hashed(&look_ups)]);
            of_integers.round(&warm_up, &[look_ups]);
        } else {
            contest.round(&warm_up, &[look_ups]);
        }
        lab.step();
    }
    for Placed { peer, samples, answers, .. } in
        [of_integers, contest].into_iter().flat_map(|contest| contest.finish(1)).flatten()
    {
        lab.check(&peer, &format!("{} keys, {}", order.name(), Bytes(bytes)), answers);
        let measurement = Measurement::new("keys", "look-up", peer).table(bytes, load).hits(100).order(order.name());
        lab.record(measurement.samples(samples));
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::grid(measurements, |one| format!("{} at {}%", Bytes(one.bytes), one.load), |one| one.order.to_string())
}

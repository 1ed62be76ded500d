//! Batches on every backend that the processor has, against single calls of the same filter and against the fastest peer.

use koel::Backend;

use super::Experiment;
use crate::{
    keys::{self, LookUps},
    lab::{Contest, Lab, Placed, Subject},
    measurement::Measurement,
    options::{Bytes, Settings},
    peers,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "backends",
    title: "Backends of batches",
    explanation: "The same koel filter asked by single calls of contains_hash and by contains_hashes on each backend that this processor has \
                  (SWAR is one key at a time in plain arithmetic, AVX2 four, AVX-512 eight), beside sbbf-rs.",
    steps,
    run,
    render,
};

/// The name of a backend's records.
pub(crate) fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Swar => "koel batch, SWAR",
        Backend::Neon => "koel batch, NEON",
        Backend::Avx2 => "koel batch, AVX2",
        Backend::Avx512 => "koel batch, AVX-512",
    }
}

const HITS: [u32; 2] = [0, 100];

fn steps(settings: &Settings) -> u64 {
    let rounds: u64 = settings.two_sizes().into_iter().map(|bytes| settings.rounds_for(bytes)).sum();
    settings.loads.len() as u64 * rounds
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        for load in lab.settings.loads.clone() {
            case(lab, bytes, load);
        }
    }
}

fn case(lab: &mut Lab<'_>, bytes: u64, load: u32) {
    lab.say(format!("backends, {}, {load}%", Bytes(bytes)));
    let plan = lab.plan(bytes, load);
    let filter = peers::koel::table(&plan, 4).expect("a table");
    let inserted = keys::in_chunks(0, plan.keys, |hashes| peers::koel::insert_hashes(&filter, hashes));
    let sbbf = peers::chosen(lab.settings).into_iter().find(|spec| spec.name == "sbbf-rs");
    let sbbf = sbbf.and_then(|spec| Subject::filled(spec, &plan).ok());
    let (count, passes) = lab.sample(bytes);
    let mut contest = Contest::new(passes);
    contest.add(peers::koel::SINGLE, |hashes, found| {
        for (hash, found) in hashes.iter().zip(found) {
            *found = filter.contains_hash(*hash);
        }
    });
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        let filter = &filter;
        contest.add(name(backend), move |hashes, found| filter.contains_hashes_with(backend, hashes, found));
    }
    if let Some(sbbf) = &sbbf {
        contest.add(sbbf.spec.name, |hashes, found| sbbf.filter.contains_many(hashes, found));
    }
    for round in 0..lab.settings.rounds_for(bytes) {
        let draw = |number, count, hits| LookUps::random(inserted, count, hits, 4 * round + number);
        contest.round(&draw(0, lab.warm_up(bytes), 50), &[draw(1, count, HITS[0]), draw(2, count, HITS[1])]);
        lab.step();
    }
    for (hits, placed) in HITS.into_iter().zip(contest.finish(HITS.len())) {
        for Placed { peer, samples, answers, .. } in placed {
            lab.check(&peer, &format!("backends, {} at {load}%", Bytes(bytes)), answers);
            lab.record(Measurement::new("backends", "look-up", peer).table(bytes, load).hits(hits).samples(samples));
        }
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::by_load(measurements, |one| format!("{}, {}% hits", Bytes(one.bytes), one.hits.unwrap_or(0)))
}

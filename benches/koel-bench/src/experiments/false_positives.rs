//! False positives against the rate that is stated, and what a key costs.

use super::Experiment;
use crate::{
    keys,
    lab::{Lab, Subject},
    measurement::{Measurement, Unit},
    options::{Mode, Settings},
    peers::{self, Peer},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "false-positives",
    title: "False positives and memory",
    explanation: "Absent keys that are answered \"maybe\", at the highest load up to 90% in a table of the smallest size from 1 MiB on, against the rate that \
                  the filter itself states for what is in it; and bits of memory for each key that is in. All layouts of koel. Where none of the \
                  absent keys was a false positive, the rate is below one in their number.",
    steps,
    run,
    render,
};

/// The records.
pub(crate) const MEASURED: &str = "measured";
/// What the filter says of itself.
pub(crate) const STATED: &str = "stated";
/// Bits for each key.
pub(crate) const BITS: &str = "bits per key";
const LAYOUTS: [(usize, &str); 5] =
    [(2, "koel 2 x 30"), (3, "koel 3 x 20"), (4, "koel 4 x 15"), (5, "koel 5 x 12"), (6, "koel 6 x 10")];

fn steps(settings: &Settings) -> u64 {
    (settings.peers.len() + LAYOUTS.len()) as u64
}

/// The size at which it is measured: the rate does not depend on it.
pub(crate) fn size(settings: &Settings) -> u64 {
    settings.sizes.iter().copied().find(|bytes| *bytes >= 1 << 20).unwrap_or(settings.sizes[0])
}

fn run(lab: &mut Lab<'_>) {
    let bytes = size(lab.settings);
    let load = lab.settings.usual_load();
    let plan = lab.plan(bytes, load);
    let chosen = peers::chosen(lab.settings);
    if chosen.iter().any(|spec| spec.ours) {
        for (slots, name) in LAYOUTS {
            lab.say(format!("false positives: {name}"));
            let filter = peers::koel::table(&plan, slots).expect("a table");
            // The layouts differ in slots for the same memory; the wide ones are not filled beyond what they take.
            let load = f64::from(load.min(if slots == 2 { 80 } else { 90 })) / 100.0;
            let keys = (filter.buckets() as f64 * slots as f64 * load) as u64;
            keys::in_chunks(0, keys, |hashes| peers::koel::insert_hashes(&filter, hashes));
            let found = |hashes: &[u64], found: &mut [bool]| filter.contains_hashes(hashes, found);
            measure(lab, name, keys, filter.memory_bytes(), Some(filter.false_positive_rate()), found);
        }
    }
    for spec in chosen.into_iter().filter(|spec| !spec.ours) {
        lab.say(format!("false positives: {}", spec.name));
        match Subject::filled(spec, &plan) {
            Ok(Subject { filter, keys, .. }) => {
                let found = |hashes: &[u64], found: &mut [bool]| filter.contains_many(hashes, found);
                measure(lab, spec.name, keys, filter.memory_bytes(), Peer::stated_rate(&*filter), found);
            }
            Err(note) => {
                lab.record(Measurement::new("false-positives", MEASURED, spec.name).table(bytes, load).note(note));
            }
        }
    }
}

fn measure(
    lab: &mut Lab<'_>,
    name: &str,
    keys: u64,
    memory: usize,
    stated: Option<f64>,
    contains: impl Fn(&[u64], &mut [bool]),
) {
    let (bytes, load) = (size(lab.settings), lab.settings.usual_load());
    let asked: u64 = match lab.settings.mode {
        Mode::Tiny => 1 << 17,
        Mode::Quick => 1 << 22,
        Mode::Full => 1 << 25,
    };
    let mut found = vec![false; keys::CHUNK];
    let mut positives = 0_u64;
    for start in (0..asked).step_by(keys::CHUNK) {
        let hashes: Vec<u64> = (start..start + keys::CHUNK as u64).map(keys::absent).collect();
        contains(&hashes, &mut found);
        positives += found.iter().filter(|found| **found).count() as u64;
    }
    let record = |operation, value: f64, unit| {
        Measurement::new("false-positives", operation, name).table(bytes, load).unit(unit).samples(vec![value])
    };
    let rate = positives as f64 / asked as f64;
    lab.record(record(MEASURED, rate, Unit::Share).note(format!("{positives} of {asked}")));
    if let Some(stated) = stated {
        lab.record(record(STATED, stated, Unit::Share));
    }
    lab.record(record(BITS, memory as f64 * 8.0 / keys as f64, Unit::BitsPerKey));
    lab.step();
}

fn render(measurements: &[&Measurement]) -> String {
    tables::grid(measurements, |_| String::new(), |one| one.operation.clone())
}

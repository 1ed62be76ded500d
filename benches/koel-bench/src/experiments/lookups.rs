//! Look-ups by table size, load and share of hits, beside the limit of the memory.

use super::Experiment;
use crate::{
    keys::LookUps,
    lab::{Contest, Lab, Placed, Subject},
    measurement::Measurement,
    options::{Bytes, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "lookups",
    title: "Look-ups",
    explanation: "Million look-ups per second of one thread. All filters hold the same keys and are asked for the same keys, in interleaved \
                  rounds; before its samples of a round each filter \
                  looks up other keys that do not count, twice as many as the table has cache lines (in tables up to 64 MiB), so that all are equally warm. In tables of up to 4 MiB a sample goes several \
                  times over 65,536 keys, in larger ones once over many, drawn anew for each round. The limit reads one word (or two) at \
                  random for each of the same keys from an array of the same size and page kind: the best of a plain loop, prefetch and gather.",
    steps,
    run,
    render,
};

/// Percent of present keys among those looked up.
pub(crate) const HITS: [u32; 3] = [0, 50, 100];

fn steps(settings: &Settings) -> u64 {
    let of_size =
        |bytes: &u64| settings.loads_for(*bytes).len() as u64 * (settings.rounds_for(*bytes) + weight(*bytes));
    settings.sizes.iter().map(of_size).sum()
}

/// Filling a large table takes long.
fn weight(bytes: u64) -> u64 {
    1 + bytes / (2 << 20)
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.sizes.clone() {
        size(lab, bytes);
    }
}

fn size(lab: &mut Lab<'_>, bytes: u64) {
    let array = lab.array(bytes);
    let mut subjects: Vec<Subject> = Vec::new();
    let specs = lab.specs(bytes);
    let mut refused = vec![false; specs.len()];
    let loads = lab.settings.loads_for(bytes);
    let last = *loads.last().expect("at least one load");
    for load in loads {
        let plan = lab.plan(bytes, load);
        lab.say(format!("look-ups, {}, {load}%: filling", Bytes(bytes)));
        for (spec, refused) in specs.iter().zip(&mut refused) {
            // Those with slots are filled on; others are built for just so many keys.
            let kept = subjects.iter().position(|subject| subject.spec.name == spec.name);
            let mut subject = match kept {
                Some(at) if !spec.sized_for_keys => Ok(subjects.swap_remove(at)),
                Some(at) => {
                    drop(subjects.swap_remove(at));
                    Subject::empty(*spec, &plan)
                }
                None if *refused => continue,
                None => Subject::empty(*spec, &if spec.sized_for_keys { plan } else { lab.plan(bytes, last) }),
            };
            let full = subject.as_mut().map_err(|error| error.clone()).and_then(|subject| {
                subject.fill(plan.keys);
                subject.is_full_as_planned(&plan)
            });
            match (subject, full) {
                (Ok(subject), Ok(())) => subjects.push(subject),
                (_, full) => {
                    *refused = true;
                    let note = full.err().unwrap_or_default();
                    lab.record(Measurement::new("lookups", "look-up", spec.name).table(bytes, load).note(note));
                }
            }
        }
        for _ in 0..weight(bytes) {
            lab.step();
        }
        lab.say(format!("look-ups, {}, {load}%", Bytes(bytes)));
        let (count, passes) = lab.sample(bytes);
        let mut contest = Contest::new(passes);
        for subject in &subjects {
            contest.add(subject.spec.name, |hashes, found| subject.filter.contains_many(hashes, found));
        }
        contest.add_limit(&array);
        for round in 0..lab.settings.rounds_for(bytes) {
            let draw = |number, count, hits| LookUps::random(plan.keys, count, hits, 4 * round + number);
            let sets = [1, 2, 3].map(|number| draw(number, count, HITS[number as usize - 1]));
            contest.round(&draw(0, lab.warm_up(bytes), 50), &sets);
            lab.step();
        }
        for (hits, placed) in HITS.into_iter().zip(contest.finish(HITS.len())) {
            for Placed { peer, samples, answers, way } in placed {
                lab.check(&peer, &format!("look-ups, {} at {load}%", Bytes(bytes)), answers);
                let measurement =
                    Measurement::new("lookups", "look-up", peer).table(bytes, load).hits(hits).samples(samples);
                lab.record(Measurement { note: way.map(str::to_string), ..measurement });
            }
        }
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::by_load(measurements, |one| {
        one.hits.map_or_else(String::new, |hits| format!("{}, {hits}% hits", Bytes(one.bytes)))
    })
}

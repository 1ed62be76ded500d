//! What speaks for which of koel's filters: the table of `docs/choosing.md`.

use std::hint;

use koel::{
    CuckooFilter, GrowableCuckooFilter, MembershipFilter,
    bloom::{BloomFilter, CountingBloomFilter, Removal, ScalableBloomFilter, ScalableCountingBloomFilter},
};

use super::Experiment;
use crate::{
    keys::{self, Answers, LookUps},
    lab::{Contest, Lab},
    measurement::{Measurement, Unit, mops, time},
    options::{Mode, Settings},
    peers::koel::{inserted, removed},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "choosing",
    title: "Which filter",
    explanation: "Koel's own filters side by side, by batches, one thread. Each is built for so many keys and a rate; those that grow begin with a 64th of the keys. Memory and false \
                  positives with all keys in, and what becomes of it with twice as many: what share of absent keys is answered \"maybe\", or where inserts were refused. Then million operations per \
                  second at a rate of 0.1%: filling the filter (with page faults), look-ups in interleaved rounds, and taking an eighth of the keys out; and the share of those removals that \
                  did not.",
    steps,
    run,
    render,
};

/// A filter, as this experiment uses it.
trait Family: MembershipFilter {
    /// How many went in, up to the first that was refused.
    fn insert_many(&self, hashes: &[u64]) -> usize;

    /// How many were taken out; none if keys cannot be.
    fn remove_many(&self, _hashes: &[u64]) -> Option<usize> {
        None
    }
}

impl Family for CuckooFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        inserted(hashes, self.insert_hashes(hashes))
    }

    fn remove_many(&self, hashes: &[u64]) -> Option<usize> {
        Some(removed(hashes, |hashes, removed| self.remove_hashes(hashes, removed)))
    }
}

impl Family for GrowableCuckooFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        inserted(hashes, self.insert_hashes(hashes))
    }

    fn remove_many(&self, hashes: &[u64]) -> Option<usize> {
        Some(removed(hashes, |hashes, removed| self.remove_hashes(hashes, removed)))
    }
}

impl Family for BloomFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        self.insert_hashes(hashes);
        hashes.len()
    }
}

impl Family for CountingBloomFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        self.insert_hashes(hashes);
        hashes.len()
    }

    fn remove_many(&self, hashes: &[u64]) -> Option<usize> {
        Some(removed(hashes, |hashes, removed| self.remove_hashes(hashes, removed)))
    }
}

impl Family for ScalableBloomFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        inserted(hashes, self.insert_hashes(hashes))
    }
}

impl Family for ScalableCountingBloomFilter<u64> {
    fn insert_many(&self, hashes: &[u64]) -> usize {
        inserted(hashes, self.insert_hashes(hashes))
    }

    fn remove_many(&self, hashes: &[u64]) -> Option<usize> {
        Some(hashes.iter().filter(|hash| self.remove_hash(**hash) == Removal::Removed).count())
    }
}

/// What a filter is built for.
#[derive(Clone, Copy)]
struct Wish {
    keys: usize,
    rate: f64,
    huge_pages: bool,
}

impl Wish {
    /// What those that grow begin with.
    fn first(self) -> usize {
        self.keys.div_ceil(64)
    }
}

type Build = fn(Wish) -> Result<Box<dyn Family>, String>;

/// A builder of one kind with what all have, built.
macro_rules! built {
    ($builder:expr, $wish:ident) => {{
        let builder = $builder.false_positive_rate($wish.rate).seed(1).huge_pages($wish.huge_pages);
        Ok(Box::new(builder.build().map_err(|error| error.to_string())?))
    }};
}

const FILTERS: [(&str, Build); 7] = [
    ("CuckooFilter", |wish| built!(CuckooFilter::<u64>::builder().capacity(wish.keys), wish)),
    ("GrowableCuckooFilter", |wish| {
        built!(GrowableCuckooFilter::<u64>::builder().initial_capacity(wish.first()).max_capacity(wish.keys), wish)
    }),
    ("BloomFilter", |wish| built!(BloomFilter::<u64>::builder().capacity(wish.keys), wish)),
    ("BloomFilter, blocked", |wish| built!(BloomFilter::<u64>::builder().capacity(wish.keys).blocked(true), wish)),
    ("CountingBloomFilter", |wish| built!(CountingBloomFilter::<u64>::builder().capacity(wish.keys), wish)),
    ("ScalableBloomFilter", |wish| built!(ScalableBloomFilter::<u64>::builder().capacity(wish.first()), wish)),
    ("ScalableCountingBloomFilter", |wish| {
        built!(ScalableCountingBloomFilter::<u64>::builder().capacity(wish.first()), wish)
    }),
];

/// All names under which something of ours is recorded here that is in no registry.
pub(super) const NAMES: [&str; FILTERS.len()] = {
    let mut names = [""; FILTERS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FILTERS[at].0;
        at += 1;
    }
    names
};

const RATES: [(f64, &str); 3] = [(0.01, "1%"), (0.001, "0.1%"), (0.0001, "0.01%")];
/// The rate of the speeds.
const RATE: f64 = 0.001;
const NOT_TAKEN: &str = "removals that did not take the key out";
const ABSENT: &str = "look-up, absent";
const PRESENT: &str = "look-up, present";

/// Keys of the filters whose memory is looked at.
fn keys_of_memory(settings: &Settings) -> u64 {
    if settings.mode == Mode::Tiny { 10_000 } else { 1_000_000 }
}

fn rounds(settings: &Settings, bytes: u64) -> u64 {
    settings.rounds_for(bytes).min(5)
}

fn steps(settings: &Settings) -> u64 {
    let speeds: u64 = settings.two_sizes().iter().map(|bytes| FILTERS.len() as u64 + rounds(settings, *bytes)).sum();
    (RATES.len() * FILTERS.len()) as u64 + speeds
}

fn run(lab: &mut Lab<'_>) {
    for rate in RATES {
        for filter in FILTERS {
            memory(lab, rate, filter);
            lab.step();
        }
    }
    for bytes in lab.settings.two_sizes() {
        speed(lab, bytes);
    }
}

fn answers(filter: &dyn Family, look_ups: &LookUps) -> Answers {
    let mut found = vec![false; look_ups.hashes.len()];
    filter.contains_hashes(&look_ups.hashes, &mut found);
    look_ups.check(&found)
}

/// The share of absent keys that is answered "maybe".
fn false_positives(filter: &dyn Family, look_ups: &LookUps) -> f64 {
    let answers = answers(filter, look_ups);
    answers.false_positives as f64 / answers.absent as f64
}

fn memory(lab: &mut Lab<'_>, (rate, percent): (f64, &str), (name, build): (&'static str, Build)) {
    lab.say(format!("memory, {name} at {percent}"));
    let count = keys_of_memory(lab.settings);
    let wish = Wish { keys: count as usize, rate, huge_pages: false };
    let new = |operation: String, unit| Measurement::new("choosing", operation, name).unit(unit);
    let filter = match build(wish) {
        Ok(filter) => filter,
        Err(reason) => return lab.record(new(format!("bits per key at {percent}"), Unit::BitsPerKey).note(reason)),
    };
    let went_in = keys::in_chunks(0, count, |hashes| filter.insert_many(hashes));
    assert_eq!(went_in, count, "{name} is built for so many keys");
    let present = LookUps::random(count, 1 << 16, 100, 1);
    lab.check(name, &format!("choosing, at {percent}"), answers(&*filter, &present));
    let bits = filter.memory_bytes() as f64 * 8.0 / count as f64;
    lab.record(new(format!("bits per key at {percent}"), Unit::BitsPerKey).samples(vec![bits]));
    let absent = LookUps::random(count, 4 << 20, 0, 2);
    let share = false_positives(&*filter, &absent);
    lab.record(new(format!("false positives at {percent}"), Unit::Share).samples(vec![share]));
    if rate == RATE {
        let more = keys::in_chunks(count, 2 * count, |hashes| filter.insert_many(hashes));
        let share = false_positives(&*filter, &absent);
        let measurement = new("false positives with twice the keys".to_string(), Unit::Share);
        lab.record(if more == count {
            measurement.samples(vec![share])
        } else {
            measurement.note(format!("refused at {:.2} times", (count + more) as f64 / count as f64))
        });
    }
}

fn speed(lab: &mut Lab<'_>, bytes: u64) {
    // As many as a filter of 16 bits a key has in so many bytes.
    let count = bytes / 2;
    let wish = Wish { keys: count as usize, rate: RATE, huge_pages: lab.settings.huge_pages };
    let record = |lab: &mut Lab<'_>, operation: &str, name: &str, unit, samples| {
        lab.record(Measurement::new("choosing", operation, name).table(bytes, 0).unit(unit).samples(samples));
    };
    let mut filters = Vec::new();
    for (name, build) in FILTERS {
        lab.say(format!("{count} keys, {name}: filling"));
        if let Ok(filter) = build(wish) {
            let mut taken = std::time::Duration::ZERO;
            let went_in = keys::in_chunks(0, count, |hashes| {
                let mut went_in = 0;
                taken += time(|| went_in = filter.insert_many(hashes));
                went_in
            });
            assert_eq!(went_in, count, "{name} is built for so many keys");
            record(lab, "insert", name, Unit::Mops, vec![mops(count, taken)]);
            filters.push((name, filter));
        }
        lab.step();
    }
    lab.say(format!("{count} keys: look-ups"));
    let (sample, passes) = lab.sample(bytes);
    let mut contest = Contest::new(passes);
    for (name, filter) in &filters {
        contest.add(*name, |hashes, found| filter.contains_hashes(hashes, found));
    }
    for round in 0..rounds(lab.settings, bytes) {
        let draw = |number, look_ups, hits| LookUps::random(count, look_ups, hits, 3 * round + number);
        contest.round(&draw(0, lab.warm_up(bytes), 50), &[draw(1, sample, 0), draw(2, sample, 100)]);
        lab.step();
    }
    for (operation, placed) in [ABSENT, PRESENT].into_iter().zip(contest.finish(2)) {
        for one in placed {
            lab.check(&one.peer, &format!("choosing, {count} keys"), one.answers);
            record(lab, operation, &one.peer, Unit::Mops, one.samples);
        }
    }
    // Not the keys that came first alone, which in a filter with layers are in the first ones.
    let hashes: Vec<u64> = (0..count).step_by(8).map(keys::present).collect();
    for (name, filter) in filters {
        let mut outcome = None;
        let taken = time(|| outcome = hint::black_box(filter.remove_many(&hashes)));
        if let Some(removed) = outcome {
            record(lab, "remove", name, Unit::Mops, vec![mops(hashes.len() as u64, taken)]);
            record(lab, NOT_TAKEN, name, Unit::Share, vec![(hashes.len() - removed) as f64 / hashes.len() as f64]);
        }
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::rows_and_columns(
        measurements,
        |one| match one.bytes {
            0 => "Memory, for a million keys".to_string(),
            bytes => format!("Speed, for {} keys at 0.1%", bytes / 2),
        },
        |one| one.peer.clone(),
        |one| one.operation.clone(),
    )
}

//! What it costs to grow.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use koel::{CuckooFilter, GrowableCuckooFilter};

use super::{
    Experiment,
    latency::{QUANTILES, histogram},
};
use crate::{
    keys::{self, LookUps},
    lab::{Contest, Lab},
    measurement::{Measurement, Unit, mops, time},
    options::{Bytes, Mode, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "growth",
    title: "Growth",
    explanation: "A filter that begins with room for 65,536 keys and doubles until it holds all (32 times 2^20 in a full run), beside one that was given its last size \
                  by `reserve` before the first key, and beside a `CuckooFilter` of the same rate. Inserts: all keys. Draining: what one thread moves from the last but one table into the last, in fingerprints. \
                  Look-ups (half hits): of a filter whose last growth is half drained, of the same filter drained, and after all keys came in. Latency: each insert \
                  timed by itself over the whole growth, page faults of new tables included; a huge page takes the system far longer to make than a small one. Memory: what the filter says that it has.",
    steps,
    run,
    render,
};

/// The filter that grows, by single calls.
pub(crate) const GROWING: &str = "koel growing";
const GROWING_BATCH: &str = "koel growing batch";
/// The same filter, grown to its last size before the first key.
const RESERVED: &str = "koel growing, reserved";
const RESERVED_BATCH: &str = "koel growing batch, reserved";
/// The type that does not grow, at the same rate when full; it needs less memory.
const FIXED: &str = "koel CuckooFilter";
const FIXED_BATCH: &str = "koel CuckooFilter batch";

/// The filter that grows on ordinary pages: latency alone.
pub(crate) const SMALL_PAGES: &str = "koel growing, small pages";

/// All names under which something of ours is recorded here.
pub(super) const NAMES: [&str; 6] = [GROWING, GROWING_BATCH, RESERVED, RESERVED_BATCH, FIXED, FIXED_BATCH];

/// Keys that the first table has room for.
const INITIAL: u64 = 1 << 16;
/// Parts of the whole growth that the plot shows.
const PARTS: u64 = 100;
/// The share of the last growth that is drained when look-ups are measured during it.
const DRAINED: f64 = 0.5;

const fn keys(settings: &Settings) -> u64 {
    INITIAL
        << match settings.mode {
            Mode::Tiny => 2,
            Mode::Quick => 4,
            Mode::Full => 9,
        }
}

/// Doublings until all keys are in.
const fn last(settings: &Settings) -> u32 {
    (keys(settings) / INITIAL).ilog2()
}

fn rounds(settings: &Settings) -> u64 {
    settings.rounds.min(3)
}

fn steps(settings: &Settings) -> u64 {
    2 * rounds(settings) + 3
}

fn filter(settings: &Settings) -> GrowableCuckooFilter<u64> {
    filter_with(settings, settings.huge_pages)
}

fn filter_with(settings: &Settings, huge_pages: bool) -> GrowableCuckooFilter<u64> {
    GrowableCuckooFilter::builder()
        .initial_capacity(INITIAL as usize)
        .max_capacity(keys(settings) as usize)
        .seed(1)
        .huge_pages(huge_pages)
        .build()
        .expect("a filter")
}

fn reserved(settings: &Settings) -> GrowableCuckooFilter<u64> {
    let filter = filter(settings);
    while filter.generation() < last(settings) {
        filter.reserve(filter.capacity() + 1).expect("memory");
        filter.finish_draining();
    }
    filter
}

fn run(lab: &mut Lab<'_>) {
    let bytes = reserved(lab.settings).memory_bytes() as u64;
    lab.say("growth, inserts");
    let grown = inserts(lab, bytes);
    look_ups_after(lab, bytes, grown);
    lab.step();
    lab.say("growth, draining");
    draining(lab, bytes);
    for (name, huge_pages) in [(GROWING, lab.settings.huge_pages), (SMALL_PAGES, false)] {
        lab.say("growth, latency");
        latency(lab, bytes, name, huge_pages);
        lab.step();
    }
}

fn record(lab: &mut Lab<'_>, operation: impl Into<String>, peer: &str, bytes: u64, unit: Unit, samples: Vec<f64>) {
    let measurement = Measurement::new("growth", operation, peer).table(bytes, 0);
    lab.record(measurement.unit(unit).samples(samples));
}

/// Inserts everything; the time without that of making the keys.
fn fill(to: u64, insert: impl Fn(&[u64])) -> Duration {
    let mut taken = Duration::ZERO;
    keys::in_chunks(0, to, |hashes| {
        taken += time(|| insert(hashes));
        hashes.len()
    });
    taken
}

/// Inserts everything into a filter of either type, by batches or by single calls; the time.
macro_rules! insert_all {
    ($filter:expr, $keys:expr, $batch:expr) => {
        if $batch {
            fill($keys, |hashes| $filter.insert_hashes(hashes).expect("room"))
        } else {
            fill($keys, |hashes| hashes.iter().for_each(|hash| $filter.insert_hash(*hash).expect("room")))
        }
    };
}

/// All keys, single and in batches, into filters that grow and filters that need not. One that has grown.
fn inserts(lab: &mut Lab<'_>, bytes: u64) -> GrowableCuckooFilter<u64> {
    let all = keys(lab.settings);
    let mut samples = NAMES.map(|_| Vec::new());
    for _ in 0..rounds(lab.settings) {
        for (name, samples) in NAMES.into_iter().zip(&mut samples) {
            let batch = name.contains("batch");
            let taken = if name.starts_with(FIXED) {
                // Like the others it pays for each page that it touches first.
                let filter = fixed(lab.settings);
                insert_all!(filter, all, batch)
            } else {
                let filter = if name.contains("reserved") { reserved(lab.settings) } else { filter(lab.settings) };
                insert_all!(filter, all, batch)
            };
            samples.push(mops(all, taken));
        }
        lab.step();
    }
    for (name, samples) in NAMES.into_iter().zip(samples) {
        record(lab, "insert, all keys", name, bytes, Unit::Mops, samples);
    }
    let grown = filter(lab.settings);
    insert_all!(grown, all, true);
    grown.finish_draining();
    grown
}

fn fixed(settings: &Settings) -> CuckooFilter<u64> {
    let builder = CuckooFilter::builder().capacity(keys(settings) as usize).seed(1).huge_pages(settings.huge_pages);
    builder.build().expect("a filter")
}

/// Adds a filter to a contest, by single calls and by batches.
macro_rules! add {
    ($contest:expr, $filter:expr, $single:expr, $batch:expr) => {
        $contest.add($single, |hashes, found| {
            hashes.iter().zip(found).for_each(|(hash, found)| *found = $filter.contains_hash(*hash));
        });
        $contest.add($batch, |hashes, found| $filter.contains_hashes(hashes, found));
    };
}

fn look_ups_after(lab: &mut Lab<'_>, bytes: u64, grown: GrowableCuckooFilter<u64>) {
    let all = keys(lab.settings);
    let reserved = reserved(lab.settings);
    let fixed = fixed(lab.settings);
    insert_all!(reserved, all, true);
    insert_all!(fixed, all, true);
    let (_, passes) = lab.sample(bytes);
    let mut contest = Contest::new(passes);
    add!(contest, grown, GROWING, GROWING_BATCH);
    add!(contest, reserved, RESERVED, RESERVED_BATCH);
    add!(contest, fixed, FIXED, FIXED_BATCH);
    compete(lab, bytes, contest, all, "look-up, all keys in");
}

fn compete(lab: &mut Lab<'_>, bytes: u64, mut contest: Contest<'_>, present: u64, operation: &str) {
    let (sample, _) = lab.sample(bytes);
    for round in 0..lab.settings.rounds {
        let warm_up = LookUps::random(present, lab.warm_up(bytes), 50, 2 * round);
        contest.round(&warm_up, &[LookUps::random(present, sample, 50, 2 * round + 1)]);
    }
    for placed in contest.finish(1).remove(0) {
        lab.check(&placed.peer, operation, placed.answers);
        let (peer, suffix) = placed.peer.split_once("; ").unwrap_or((&placed.peer, ""));
        record(lab, format!("{operation}{suffix}"), peer, bytes, Unit::Mops, placed.samples);
    }
}

/// Puts keys in until the last growth has begun; how many.
fn fill_to_last_growth(filter: &GrowableCuckooFilter<u64>, settings: &Settings) -> u64 {
    let last = last(settings);
    let mut key = 0;
    // Looked at now and then: a few inserts more drain a few buckets.
    while !(filter.generation() == last && filter.is_draining()) {
        for _ in 0..64 {
            filter.insert_hash(keys::present(key)).expect("room");
            key += 1;
        }
    }
    key
}

fn draining(lab: &mut Lab<'_>, bytes: u64) {
    let mut rates = Vec::new();
    let idle = filter(lab.settings);
    let half = filter(lab.settings);
    let mut present = 0;
    for _ in 0..rounds(lab.settings) {
        let filter = filter(lab.settings);
        let keys = fill_to_last_growth(&filter, lab.settings);
        rates.push(mops(keys, time(|| filter.finish_draining())));
        present = keys;
        lab.step();
    }
    record(lab, "draining, one thread", GROWING, bytes, Unit::Mops, rates);

    fill_to_last_growth(&idle, lab.settings);
    idle.finish_draining();
    fill_to_last_growth(&half, lab.settings);
    half.drain((half.buckets() as f64 / 2.0 * DRAINED) as usize);
    assert!(half.is_draining());
    let (_, passes) = lab.sample(bytes);
    let mut contest = Contest::new(passes);
    add!(contest, idle, format!("{GROWING}; idle"), format!("{GROWING_BATCH}; idle"));
    add!(contest, half, format!("{GROWING}; half drained"), format!("{GROWING_BATCH}; half drained"));
    compete(lab, bytes, contest, present, "look-up, ");
}

fn latency(lab: &mut Lab<'_>, bytes: u64, peer: &str, huge_pages: bool) {
    let all = keys(lab.settings);
    let filter = filter_with(lab.settings, huge_pages);
    let mut whole = histogram();
    let mut peak = 0;
    for part in 0..PARTS {
        let mut histogram: Histogram<u64> = histogram();
        for key in part * all / PARTS..(part + 1) * all / PARTS {
            let hash = keys::present(key);
            let start = Instant::now();
            filter.insert_hash(hash).expect("room");
            histogram.saturating_record(start.elapsed().as_nanos() as u64);
        }
        let mut timeline = |what: &str, unit, value| {
            let measurement = Measurement::new("growth", what, peer).table(bytes, part as u32 + 1);
            lab.record(measurement.unit(unit).samples(vec![value]));
        };
        timeline("timeline, mean", Unit::Nanoseconds, histogram.mean());
        timeline("timeline, p99.9", Unit::Nanoseconds, histogram.value_at_quantile(0.999) as f64);
        timeline("timeline, max", Unit::Nanoseconds, histogram.max() as f64);
        timeline("timeline, memory", Unit::Bytes, filter.memory_bytes() as f64);
        peak = peak.max(filter.memory_bytes());
        whole.add(&histogram).expect("the same bounds");
    }
    for (quantile, name) in QUANTILES {
        let value = whole.value_at_quantile(quantile) as f64;
        record(lab, format!("latency, {name}"), peer, bytes, Unit::Nanoseconds, vec![value]);
    }
    record(lab, "memory, peak", peer, bytes, Unit::Bytes, vec![peak as f64]);
    record(lab, "memory, at the end", peer, bytes, Unit::Bytes, vec![filter.memory_bytes() as f64]);
}

fn render(measurements: &[&Measurement]) -> String {
    let shown: Vec<_> = measurements.iter().copied().filter(|one| one.load == 0).collect();
    tables::rows_and_columns(
        &shown,
        |one| {
            let kind = one.operation.split(", ").next().unwrap_or_default();
            format!("{kind}, last table of about {}", Bytes(one.bytes))
        },
        |one| one.peer.clone(),
        |one| one.operation.split_once(", ").map_or(String::new(), |(_, what)| what.to_string()),
    )
}

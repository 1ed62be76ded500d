//! What snapshots cost: those who take them, those who read them, and those who work meanwhile.

use std::{
    fs, hint, process,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use koel::{CuckooFilter, FilterRef, MappedFilter};

use super::Experiment;
use crate::{
    keys::{self, LookUps},
    lab::{Contest, Lab},
    measurement::{Measurement, Unit, mops, time},
    options::{Bytes, Mode, Settings},
    peers,
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "snapshots",
    title: "Snapshots",
    explanation: "A filter at 90% load as bytes and back, in GB (10^9 bytes) of the snapshot per second, into memory that is new each time, beside a copy of the same bytes by \
                  memcpy; what changing a few words costs at the gate of snapshots (an insert at 80% load whose home bucket is full, and the gate alone, in nanoseconds); opening a \
                  mapped file without checking its payload; look-ups (half hits) in the bytes of a snapshot beside the filter's own, and look-ups of one thread while another takes one snapshot \
                  after the other; and building a filter of a known set of hashes, as many as its builder's capacity, beside inserting them.",
    steps,
    run,
    render,
};

/// The names of what is measured.
pub(crate) const TO_BYTES: &str = "to_bytes";
pub(crate) const FROM_BYTES: &str = "from_bytes";
pub(crate) const MEMCPY: &str = "memcpy";
const VERIFY: &str = "FilterRef::verify";
pub(crate) const DISPLACED: &str = "displaced insert";
pub(crate) const GATE: &str = "gate, in and out";
pub(crate) const OPEN: &str = "MappedFilter::open";
pub(crate) const LOOK_UP: &str = "look-up";
pub(crate) const IDLE: &str = "look-up, idle";
pub(crate) const BESIDE: &str = "look-up beside snapshots";
pub(crate) const INSERT_HASHES: &str = "insert_hashes";
pub(crate) const FROM_HASHES: &str = "from_hashes";
/// The filters.
pub(crate) const VIEW: &str = "koel FilterRef";
pub(crate) const VIEW_BATCH: &str = "koel FilterRef batch";

/// All names under which something of ours is recorded here that is in no registry.
pub(super) const NAMES: [&str; 2] = [VIEW, VIEW_BATCH];

const LOAD: u32 = 90;
/// The load at which displaced inserts are timed: there the other bucket mostly has room, so that they are cheap.
const DISPLACED_LOAD: u32 = 80;
const OWN_KEYS: u64 = 1 << 41;

/// All tables that a run has, but not again and again.
fn sizes(settings: &Settings) -> Vec<u64> {
    let mut sizes = settings.two_sizes();
    // The largest takes long.
    if settings.mode == Mode::Full {
        sizes.extend(settings.sizes.last());
        sizes.dedup();
    }
    sizes
}

fn rounds(settings: &Settings, bytes: u64) -> u64 {
    settings.rounds_for(bytes).min(if bytes > 128 << 20 { 3 } else { u64::MAX })
}

fn steps(settings: &Settings) -> u64 {
    sizes(settings).into_iter().map(|bytes| 3 * rounds(settings, bytes)).sum()
}

fn run(lab: &mut Lab<'_>) {
    for bytes in sizes(lab.settings) {
        lab.say(format!("snapshots, {}", Bytes(bytes)));
        let plan = lab.plan(bytes, LOAD);
        let filter = peers::koel::table(&plan, 4).expect("a table");
        let present = keys::in_chunks(0, plan.keys, |hashes| peers::koel::insert_hashes(&filter, hashes));
        conversions(lab, bytes, &filter);
        open(lab, bytes, &filter);
        look_ups(lab, bytes, &filter, present);
        beside(lab, bytes, &filter, present);
        drop(filter);
        gate(lab, bytes);
        known(lab, bytes);
    }
}

fn record(lab: &mut Lab<'_>, bytes: u64, operation: &str, peer: &str, unit: Unit, samples: Vec<f64>) {
    let measurement = Measurement::new("snapshots", operation, peer).table(bytes, LOAD).unit(unit);
    lab.record(measurement.samples(samples));
}

fn conversions(lab: &mut Lab<'_>, bytes: u64, filter: &CuckooFilter<u64>) {
    const NAMES: [&str; 4] = [MEMCPY, TO_BYTES, FROM_BYTES, VERIFY];
    let snapshot = filter.to_bytes();
    // A small table takes microseconds: as often as makes a measurable while of it.
    let times = (64 << 20) / snapshot.len().min(64 << 20);
    let rate = |work: &dyn Fn()| {
        let taken = time(|| (0..times).for_each(|_| work()));
        (snapshot.len() * times) as f64 / taken.as_secs_f64() / 1e9
    };
    let mut samples = NAMES.map(|_| Vec::new());
    for _ in 0..rounds(lab.settings, bytes) {
        let figures = [
            rate(&|| drop(hint::black_box(snapshot.to_vec()))),
            rate(&|| drop(hint::black_box(filter.to_bytes()))),
            rate(&|| drop(hint::black_box(CuckooFilter::<u64>::from_bytes(&snapshot).expect("a snapshot")))),
            rate(&|| FilterRef::<u64>::new(&snapshot).map(drop).expect("a snapshot")),
        ];
        samples.iter_mut().zip(figures).for_each(|(samples, figure)| samples.push(figure));
        lab.step();
    }
    for (name, samples) in NAMES.into_iter().zip(samples) {
        record(lab, bytes, name, peers::koel::SINGLE, Unit::Gigabytes, samples);
    }
}

#[allow(unsafe_code, reason = "the promise that a mapped file does not change")]
fn open(lab: &mut Lab<'_>, bytes: u64, filter: &CuckooFilter<u64>) {
    let path = std::env::temp_dir().join(format!("koel-bench-{}.koel", process::id()));
    let outcome = filter.save(&path).map_err(|error| error.to_string()).and_then(|()| {
        (0..32)
            .map(|_| {
                let start = Instant::now();
                // SAFETY: the file is this process's own, and it does not change it.
                let mapped = unsafe { MappedFilter::<u64>::open(&path) }.map_err(|error| error.to_string())?;
                hint::black_box(mapped.contains_hash(1));
                Ok(start.elapsed().as_nanos() as f64)
            })
            .collect::<Result<Vec<_>, String>>()
    });
    let _ = fs::remove_file(&path);
    match outcome {
        Ok(samples) => record(lab, bytes, OPEN, peers::koel::SINGLE, Unit::Nanoseconds, samples),
        Err(reason) => {
            lab.record(Measurement::new("snapshots", OPEN, peers::koel::SINGLE).table(bytes, LOAD).note(reason));
        }
    }
}

fn look_ups(lab: &mut Lab<'_>, bytes: u64, filter: &CuckooFilter<u64>, present: u64) {
    // In the same kind of pages as the filter's table, as far as the heap gives them.
    let snapshot = filter.to_bytes();
    let view = FilterRef::<u64>::new(&snapshot).expect("a snapshot");
    let (count, passes) = lab.sample(bytes);
    let mut contest = Contest::new(passes);
    contest.add(peers::koel::SINGLE, |hashes, found| {
        hashes.iter().zip(found).for_each(|(hash, found)| *found = filter.contains_hash(*hash));
    });
    contest.add(VIEW, |hashes, found| {
        hashes.iter().zip(found).for_each(|(hash, found)| *found = view.contains_hash(*hash));
    });
    contest.add(peers::koel::BATCH, |hashes, found| filter.contains_hashes(hashes, found));
    contest.add(VIEW_BATCH, |hashes, found| view.contains_hashes(hashes, found));
    for round in 0..rounds(lab.settings, bytes) {
        let draw = |number, count| LookUps::random(present, count, 50, 2 * round + number);
        contest.round(&draw(0, lab.warm_up(bytes)), &[draw(1, count)]);
        lab.step();
    }
    for placed in contest.finish(1).remove(0) {
        lab.check(&placed.peer, &format!("snapshots, {}", Bytes(bytes)), placed.answers);
        let measurement = Measurement::new("snapshots", LOOK_UP, placed.peer).table(bytes, LOAD).hits(50);
        lab.record(measurement.samples(placed.samples));
    }
}

/// A reader alone, and while another thread takes snapshots.
fn beside(lab: &mut Lab<'_>, bytes: u64, filter: &CuckooFilter<u64>, present: u64) {
    let (count, passes) = lab.sample(bytes);
    let mut found = vec![false; count];
    let mut samples = [const { Vec::new() }; 2];
    for round in 0..rounds(lab.settings, bytes) {
        let sample = LookUps::random(present, count, 50, round);
        let mut read = || {
            filter.contains_hashes(&sample.hashes, &mut found);
            let taken = time(|| {
                for _ in 0..4 * passes {
                    filter.contains_hashes(&sample.hashes, hint::black_box(&mut found));
                }
            });
            mops((count * 4 * passes) as u64, taken)
        };
        let idle = read();
        let stop = AtomicBool::new(false);
        let busy = thread::scope(|scope| {
            scope.spawn(|| {
                // One buffer: its pages are made once, and not by the system while it is measured.
                let mut snapshot = Vec::new();
                // Relaxed: a signal to end orders nothing else.
                while !stop.load(Ordering::Relaxed) {
                    snapshot.clear();
                    filter.append_to(&mut snapshot);
                }
            });
            // Until it is at work.
            thread::sleep(Duration::from_millis(20));
            let busy = read();
            stop.store(true, Ordering::Relaxed);
            busy
        });
        lab.check(peers::koel::BATCH, &format!("beside snapshots, {}", Bytes(bytes)), sample.check(&found));
        samples.iter_mut().zip([idle, busy]).for_each(|(samples, sample)| samples.push(sample));
        lab.step();
    }
    for ((operation, threads), samples) in [(IDLE, 1), (BESIDE, 2)].into_iter().zip(samples) {
        let measurement = Measurement::new("snapshots", operation, peers::koel::BATCH).table(bytes, LOAD).hits(50);
        lab.record(measurement.threads(threads).samples(samples));
    }
}

/// Displaced inserts, and the gate alone.
fn gate(lab: &mut Lab<'_>, bytes: u64) {
    const PASSES: u32 = 1 << 16;
    let mut samples = [const { Vec::new() }; 2];
    for _ in 0..rounds(lab.settings, bytes) {
        let plan = lab.plan(bytes, DISPLACED_LOAD);
        let filter = peers::koel::table(&plan, 4).expect("a table");
        keys::in_chunks(0, plan.keys, |hashes| peers::koel::insert_hashes(&filter, hashes));
        let words: Vec<u64> = filter.words().collect();
        let is_full = |word: u64| (0..4).all(|slot| word >> (15 * slot) & 0x7fff != 0);
        let crowded = (OWN_KEYS..).map(keys::present).filter(|hash| is_full(words[filter.class_of_hash(*hash).0]));
        let hashes: Vec<u64> = crowded.take((plan.keys / 50).clamp(1, 1 << 18) as usize).collect();
        let taken = time(|| hashes.iter().for_each(|hash| filter.insert_hash(*hash).expect("room")));
        samples[0].push(taken.as_nanos() as f64 / hashes.len() as f64);
        let taken = time(|| (0..PASSES).for_each(|_| filter.pass_gate()));
        samples[1].push(taken.as_nanos() as f64 / f64::from(PASSES));
    }
    for (operation, samples) in [DISPLACED, GATE].into_iter().zip(samples) {
        let measurement = Measurement::new("snapshots", operation, peers::koel::SINGLE).table(bytes, DISPLACED_LOAD);
        lab.record(measurement.unit(Unit::Nanoseconds).samples(samples));
    }
}

/// A known set, and the same inserted.
fn known(lab: &mut Lab<'_>, bytes: u64) {
    let count = bytes / 2 * u64::from(LOAD) / 100;
    let hashes: Vec<u64> = (0..count).map(keys::present).collect();
    let mut samples = [const { Vec::new() }; 2];
    for round in 0..rounds(lab.settings, bytes) {
        let builder = || CuckooFilter::<u64>::builder().seed(round).huge_pages(lab.settings.huge_pages);
        samples[0].push(mops(
            count,
            time(|| {
                let filter = builder().capacity(count as usize).build().expect("a filter");
                filter.insert_hashes(&hashes).expect("room");
                hint::black_box(filter);
            }),
        ));
        samples[1]
            .push(mops(count, time(|| drop(hint::black_box(builder().build_from_hashes(&hashes).expect("a filter"))))));
    }
    for (operation, samples) in [INSERT_HASHES, FROM_HASHES].into_iter().zip(samples) {
        record(lab, bytes, operation, peers::koel::BATCH, Unit::Mops, samples);
    }
}

fn render(measurements: &[&Measurement]) -> String {
    let (look_ups, others): (Vec<_>, Vec<_>) = measurements.iter().partition(|one| one.operation == LOOK_UP);
    let mut text = tables::rows_and_columns(
        &others,
        |_| String::new(),
        |one| one.operation.clone(),
        |one| Bytes(one.bytes).to_string(),
    );
    text += &tables::rows_and_columns(
        &look_ups,
        |_| "Look-ups".to_string(),
        |one| one.peer.clone(),
        |one| Bytes(one.bytes).to_string(),
    );
    text
}

//! Day-to-day benchmarks: single operations of one thread on a table in the second-level cache, against the fastest single-threaded
//! deletable filter in Rust (`cuckoofilter`: 8-bit fingerprints, not concurrent, no validation).
//!
//! `cargo bench --bench ops` first prints a comparison, measured in interleaved rounds on equal keys, then Criterion's figures.

use std::{
    hash::Hasher,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use koel::{Backend, CuckooFilter};

/// Buckets of four slots: 512 KiB for Koel, half as much for the peer. Both tables fit the second-level cache of about any processor.
const BUCKETS: usize = 1 << 16;
/// Keys in a table that is 90% full.
const KEYS: usize = BUCKETS * 4 * 9 / 10;
/// Look-ups measured at a time.
const LOOK_UPS: usize = 1 << 17;
const ROUNDS: usize = 31;

type Peer = cuckoofilter::CuckooFilter<Mix>;

/// A hasher for the peer that costs what Koel's remixing costs.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mixed(self.0 ^ value);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

/// The hashes that go in, in the order in which they are looked up; and as many that do not.
struct Keys {
    present: Vec<u64>,
    absent: Vec<u64>,
}

impl Keys {
    fn new() -> Self {
        let hashes = |from: usize, count: usize| (from..from + count).map(|key| mixed(key as u64 + 1)).collect();
        Self { present: hashes(0, KEYS), absent: hashes(1 << 40, KEYS) }
    }
}

fn koel() -> CuckooFilter<u64> {
    // At capacity the table would be 94.5% full; it has the peer's number of buckets.
    let capacity = (BUCKETS as f64 * 4.0 * 0.945) as usize - 80;
    CuckooFilter::builder().capacity(capacity).slots_per_bucket(4).seed(1).build().expect("a table of 512 KiB")
}

fn peer() -> Peer {
    Peer::with_capacity(BUCKETS * 4)
}

fn fill_koel(filter: &CuckooFilter<u64>, keys: &[u64]) {
    keys.iter().for_each(|hash| filter.insert_hash(*hash).expect("90% load"));
}

fn fill_peer(filter: &mut Peer, keys: &[u64]) {
    keys.iter().for_each(|hash| filter.add(hash).expect("90% load"));
}

/// What to measure: nanoseconds for each key, of Koel and of the peer.
struct Comparison {
    what: &'static str,
    koel: Vec<f64>,
    peer: Vec<f64>,
}

/// The middle of some times, with the spread from the first to the third quarter as a share of it.
fn median(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    (at(0.5), (at(0.75) - at(0.25)) / at(0.5))
}

fn nanoseconds_per_key(keys: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / keys as f64
}

/// How many hashes answer yes, none of the answers optimised away.
fn count(hashes: &[u64], mut answer: impl FnMut(u64) -> bool) {
    black_box(hashes.iter().filter(|hash| black_box(answer(**hash))).count());
}

fn compare(keys: &Keys) {
    let names = [
        "contains_hash, absent",
        "contains_hash, present",
        "contains_hashes, absent",
        "contains_hashes, present",
        "insert_hash to 90%",
        "remove_hash from 90%",
    ];
    let mut results = names.map(|what| Comparison { what, koel: Vec::new(), peer: Vec::new() });
    for _ in 0..ROUNDS {
        let (ours, mut theirs) = (koel(), peer());
        assert!(ours.buckets().abs_diff(BUCKETS) < BUCKETS / 100, "{} buckets", ours.buckets());
        // Touches the pages, so that no page fault is measured.
        fill_koel(&ours, &keys.present);
        keys.present.iter().for_each(|hash| assert!(ours.remove_hash(*hash)));
        let [absent, present, absent_batch, present_batch, insert, remove] = &mut results;
        insert.koel.push(nanoseconds_per_key(KEYS, || fill_koel(&ours, &keys.present)));
        insert.peer.push(nanoseconds_per_key(KEYS, || fill_peer(&mut theirs, &keys.present)));
        let kinds = [(absent, absent_batch, &keys.absent), (present, present_batch, &keys.present)];
        for (result, batch, hashes) in kinds {
            let hashes = &hashes[..LOOK_UPS];
            result.koel.push(nanoseconds_per_key(LOOK_UPS, || count(hashes, |hash| ours.contains_hash(hash))));
            let peer = nanoseconds_per_key(LOOK_UPS, || count(hashes, |hash| theirs.contains(&hash)));
            result.peer.push(peer);
            // The peer has no batches: its single look-ups once more.
            batch.peer.push(peer);
            let mut found = [false; 1024];
            batch.koel.push(nanoseconds_per_key(LOOK_UPS, || {
                for hashes in hashes.chunks(found.len()) {
                    ours.contains_hashes(hashes, &mut found[..hashes.len()]);
                    black_box(&found);
                }
            }));
        }
        remove.koel.push(nanoseconds_per_key(KEYS, || {
            count(&keys.present, |hash| ours.remove_hash(hash));
        }));
        remove.peer.push(nanoseconds_per_key(KEYS, || {
            count(&keys.present, |hash| theirs.delete(&hash));
        }));
    }
    println!(
        "One thread, 90% load, table in cache, medians of {ROUNDS} interleaved rounds (and quartile spread), million/s:"
    );
    println!("{:24} {:>14} {:>14} {:>8}", "", "koel 4x15", "cuckoofilter", "ratio");
    for Comparison { what, mut koel, mut peer } in results {
        let ((ours, our_spread), (theirs, their_spread)) = (median(&mut koel), median(&mut peer));
        let shown = |time: f64, spread: f64| format!("{:.1} ({:.0}%)", 1e3 / time, 100.0 * spread);
        println!(
            "{what:24} {:>14} {:>14} {:>8.2}",
            shown(ours, our_spread),
            shown(theirs, their_spread),
            theirs / ours
        );
    }
}

fn criterion(criterion: &mut Criterion, keys: &Keys) {
    let ours = koel();
    let mut theirs = peer();
    fill_koel(&ours, &keys.present);
    fill_peer(&mut theirs, &keys.present);

    for (what, hashes) in [("contains, absent", &keys.absent), ("contains, present", &keys.present)] {
        let mut group = criterion.benchmark_group(what);
        group.throughput(Throughput::Elements(LOOK_UPS as u64));
        let hashes = &hashes[..LOOK_UPS];
        group.bench_function("koel", |bencher| {
            bencher.iter(|| count(hashes, |hash| ours.contains_hash(hash)));
        });
        group.bench_function("cuckoofilter", |bencher| {
            bencher.iter(|| count(hashes, |hash| theirs.contains(&hash)));
        });
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let mut found = [false; 1024];
            group.bench_function(format!("koel, batches, {backend:?}"), |bencher| {
                bencher.iter(|| {
                    for hashes in hashes.chunks(found.len()) {
                        ours.contains_hashes_with(backend, hashes, &mut found[..hashes.len()]);
                        black_box(&found);
                    }
                });
            });
        }
        group.finish();
    }

    let mut group = criterion.benchmark_group("churn at 90%: remove and insert");
    group.throughput(Throughput::Elements(LOOK_UPS as u64));
    group.bench_function("koel", |bencher| {
        bencher.iter(|| {
            for hash in &keys.present[..LOOK_UPS] {
                assert!(ours.remove_hash(*hash));
                ours.insert_hash(*hash).expect("room for what was removed");
            }
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("insert if absent, absent");
    group.throughput(Throughput::Elements(KEYS as u64));
    group.bench_function("koel", |bencher| {
        bencher.iter_batched_ref(
            koel,
            |filter| count(&keys.present, |hash| filter.insert_if_absent_hash(hash) == Ok(true)),
            criterion::BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn main() {
    let keys = Keys::new();
    // Under `--test` everything runs once; the comparison is for people.
    if !std::env::args().any(|argument| argument == "--test") {
        compare(&keys);
    }
    let mut harness =
        Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    harness = harness.sample_size(20).configure_from_args();
    criterion(&mut harness, &keys);
    harness.final_summary();
}

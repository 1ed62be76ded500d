//! The Bloom family on real threads: what was put in is found, whatever others do meanwhile.
//!
//! `KOEL_STRESS_MILLIS` sets how long each scenario runs (default 500).

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use koel::{
    MembershipFilter,
    bloom::{BloomFilter, CountingBloomFilter, Removal, ScalableBloomFilter, ScalableCountingBloomFilter},
};

mod common;
use common::{Random, mixed};

fn duration() -> Duration {
    let millis = std::env::var("KOEL_STRESS_MILLIS").ok().and_then(|millis| millis.parse().ok());
    Duration::from_millis(millis.unwrap_or(500))
}

/// Stops the others when a thread of a scenario ends, in whatever way.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two threads put keys in; two look up, single and in batches, what has been announced.
#[test]
fn keys_that_were_put_in_are_found() {
    let scenarios: [&dyn Fn() -> Box<dyn MembershipFilter>; 5] = [
        &|| Box::new(BloomFilter::<u64>::builder().capacity(200_000).build().unwrap()),
        &|| Box::new(BloomFilter::<u64>::builder().capacity(200_000).blocked(true).build().unwrap()),
        &|| Box::new(CountingBloomFilter::<u64>::builder().capacity(200_000).counter_bits(2).build().unwrap()),
        &|| Box::new(ScalableBloomFilter::<u64>::builder().capacity(64).false_positive_rate(0.1).build().unwrap()),
        &|| {
            Box::new(
                ScalableCountingBloomFilter::<u64>::builder().capacity(64).false_positive_rate(0.1).build().unwrap(),
            )
        },
    ];
    for build in scenarios {
        let filter = &*build();
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        // Keys below these, of each writer, are in.
        let announced = [AtomicU64::new(0), AtomicU64::new(0)];
        thread::scope(|scope| {
            for (writer, announced) in announced.iter().enumerate() {
                let stop = &stop;
                scope.spawn(move || {
                    let _stop = Stop(stop);
                    let mut key = 0;
                    while !stop.load(Ordering::Relaxed) && start.elapsed() < duration() && key < 1 << 20 {
                        filter.insert_hash(mixed(key * 2 + writer as u64)).unwrap();
                        key += 1;
                        announced.store(key, Ordering::Release);
                    }
                });
            }
            for reader in 0..2 {
                let (stop, announced) = (&stop, &announced);
                scope.spawn(move || {
                    let _stop = Stop(stop);
                    let mut random = Random::new(reader);
                    while !stop.load(Ordering::Relaxed) {
                        let writer = random.below(2);
                        let keys = announced[writer as usize].load(Ordering::Acquire);
                        if keys == 0 {
                            continue;
                        }
                        // The last ones above all.
                        let key = |random: &mut Random| match random.below(2) {
                            0 => keys - 1 - random.below(keys.min(50)),
                            _ => random.below(keys),
                        };
                        let hashes: Vec<u64> = (0..100).map(|_| mixed(key(&mut random) * 2 + writer)).collect();
                        assert!(hashes.iter().all(|hash| filter.contains_hash(*hash)), "false negative");
                        let mut found = [false; 100];
                        filter.contains_hashes(&hashes, &mut found);
                        assert!(found.iter().all(|found| *found), "false negative in a batch");
                    }
                });
            }
        });
        for (writer, announced) in announced.into_iter().enumerate() {
            let mut keys = 0..announced.into_inner();
            assert!(keys.all(|key| filter.contains_hash(mixed(key * 2 + writer as u64))));
        }
    }
}

/// Keys come and go, beside others that stay, in a filter so small that all meet in the same words. At the end all that is left is what stayed.
#[test]
fn counters_are_exact_after_all() {
    for bits in [4, 8] {
        let filter = CountingBloomFilter::<u64>::builder().capacity(100).counter_bits(bits).seed(1).build().unwrap();
        (0..20).for_each(|key| assert!(filter.insert_hash(mixed(key)) || key > 0));
        let before: Vec<u64> = (0..1_000).map(|key| filter.count_hash(mixed(key))).collect();
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            for writer in 1..4 {
                let (stop, filter) = (&stop, &filter);
                scope.spawn(move || {
                    let _stop = Stop(stop);
                    let mut random = Random::new(writer);
                    while !stop.load(Ordering::Relaxed) && start.elapsed() < duration() {
                        let hash = mixed(writer * 1_000 + random.below(100));
                        filter.insert_hash(hash);
                        assert!(filter.contains_hash(hash));
                        assert!(filter.remove_hash(hash), "a present key was not removed");
                    }
                });
            }
            let _stop = Stop(&stop);
            while start.elapsed() < duration() && !stop.load(Ordering::Relaxed) {
                assert!((0..20).all(|key| filter.contains_hash(mixed(key))), "false negative");
            }
        });
        // Unless three writers met in one counter so often that it is full for ever: not with four keys in it at most.
        assert_eq!(filter.saturated(), 0);
        assert!((0..1_000).map(|key| filter.count_hash(mixed(key))).eq(before));
    }
}

/// Each thread removes what it has put in, unless that is ambiguous, while layers are added.
#[test]
fn layers_give_back_what_was_put_in() {
    let filter = ScalableCountingBloomFilter::<u64>::builder()
        .capacity(64)
        .false_positive_rate(1e-3)
        .counter_bits(8)
        .build()
        .unwrap();
    let ambiguous = AtomicU64::new(0);
    const KEYS: u64 = 30_000;
    thread::scope(|scope| {
        for writer in 0..3 {
            let (filter, ambiguous) = (&filter, &ambiguous);
            scope.spawn(move || {
                for key in 0..KEYS {
                    filter.insert_hash(mixed((writer << 32) | key)).unwrap();
                    let old = mixed((writer << 32) | (key / 2));
                    if key % 2 == 0 {
                        match filter.remove_hash(old) {
                            Removal::Removed => {}
                            Removal::Ambiguous => drop(ambiguous.fetch_add(1, Ordering::Relaxed)),
                            Removal::Absent => panic!("a present key is absent"),
                        }
                    }
                    let recent = mixed((writer << 32) | key);
                    assert!(key == 0 || filter.contains_hash(recent), "false negative");
                }
            });
        }
    });
    for key in (0..3).flat_map(|writer| (KEYS / 2..KEYS).map(move |key| writer << 32 | key)) {
        assert!(filter.contains_hash(mixed(key)));
    }
    let ambiguous = ambiguous.into_inner();
    assert!(ambiguous < 3 * KEYS / 500, "{ambiguous}");
}

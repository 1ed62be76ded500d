//! Real threads at 90 to 95% load, with relocations going on all the time: what loom cannot reach in size.
//!
//! `KOEL_STRESS_MILLIS` sets how long each scenario runs (default 1,500).

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use koel::{CuckooFilter, InsertError};

mod common;
use common::{Random, mixed};

fn duration() -> Duration {
    let millis = std::env::var("KOEL_STRESS_MILLIS").ok().and_then(|millis| millis.parse().ok());
    Duration::from_millis(millis.unwrap_or(1_500))
}

/// Load at which a layout is stressed: close to the first failure.
fn load(slots: usize) -> f64 {
    match slots {
        2 => 0.80,
        3 => 0.90,
        4 => 0.93,
        _ => 0.95,
    }
}

/// Tables with more are looked up home first.
const CACHED_BUCKETS: usize = (4 << 20) / 8;

/// Small tables have more contention, larger ones more paths; the last is beyond the cache and looks up home first.
const BUCKETS: [usize; 3] = [50, 1_000, 550_000];

fn filter(slots: usize, buckets: usize, seed: u64) -> CuckooFilter<u64> {
    // The capacity is only there to get about so many buckets.
    let capacity = (buckets * slots) as f64 * load(slots);
    let filter =
        CuckooFilter::builder().capacity(capacity as usize).slots_per_bucket(slots).seed(seed).build().unwrap();
    assert_eq!(
        filter.buckets() > CACHED_BUCKETS,
        buckets > CACHED_BUCKETS,
        "{slots} slots, {} buckets",
        filter.buckets()
    );
    filter
}

/// Fills with keys 0.. to `load`, all of which stay for good.
fn fill(filter: &CuckooFilter<u64>, load: f64) -> u64 {
    let keys = (filter.buckets() as f64 * filter.slots_per_bucket() as f64 * load) as u64;
    in_parts(keys, |hashes| filter.insert_hashes(hashes).unwrap());
    keys
}

/// Has two threads work at the hashes of keys 0.. to `keys`: what is only prepared, or counted, should not take long under a sanitizer.
fn in_parts(keys: u64, work: impl Fn(&[u64]) + Sync) {
    thread::scope(|scope| {
        for part in [0..keys / 2, keys / 2..keys] {
            scope.spawn(|| work(&part.map(mixed).collect::<Vec<_>>()));
        }
    });
}

/// Present keys are never missed while other keys come and go; no `remove` of a present key says false; `len` is exact at the end.
#[test]
fn present_keys_are_never_missed() {
    let scenarios = (2..=6).flat_map(|slots| BUCKETS.map(|buckets| (slots, buckets)));
    let share = duration() * 4 / 15;
    let (mut look_ups, mut relocations) = (0, 0);
    for (slots, buckets) in scenarios {
        let filter = filter(slots, buckets, 1);
        // The writers come and go in the rest of the load.
        let resident = fill(&filter, load(slots) - 0.15);
        let room = (filter.buckets() as f64 * slots as f64 * 0.15) as u64 / 3;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 1..=3_u64 {
                let (filter, stop) = (&filter, &stop);
                scope.spawn(move || {
                    let mut random = Random::new(writer);
                    let mut keys: Vec<u64> = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let key = mixed(writer << 40 | random.below(1 << 30));
                        if keys.len() as u64 >= room.max(1) {
                            let gone = keys.swap_remove(random.below(keys.len() as u64) as usize);
                            assert!(filter.remove_hash(gone), "a present key was not removed");
                        }
                        match filter.insert_hash(key) {
                            Ok(()) => {
                                assert!(filter.contains_hash(key), "just inserted");
                                keys.push(key);
                            }
                            Err(InsertError::Full) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    keys.into_iter().for_each(|key| assert!(filter.remove_hash(key)));
                });
            }
            let started = Instant::now();
            let mut random = Random::new(0);
            while started.elapsed() < share {
                for _ in 0..1_000 {
                    let key = random.below(resident);
                    assert!(
                        filter.contains_hash(mixed(key)),
                        "false negative: key {key}, {slots} slots, {buckets} buckets"
                    );
                }
                look_ups += 1_000;
            }
            stop.store(true, Ordering::Relaxed);
        });
        in_parts(resident, |hashes| {
            let mut found = vec![false; hashes.len()];
            filter.contains_hashes(hashes, &mut found);
            assert!(found.iter().all(|found| *found));
        });
        assert_eq!(filter.len() as u64, resident);
        let stats = filter.stats();
        relocations += stats.relocations;
        in_parts(resident, |hashes| {
            let mut removed = vec![false; hashes.len()];
            filter.remove_hashes(hashes, &mut removed);
            assert!(removed.iter().all(|removed| *removed));
        });
        assert!(filter.is_empty());
        assert!(filter.words().all(|word| word << 4 == 0 && matches!(word >> 60, 0 | 15)), "counts are exact at rest");
    }
    println!("{look_ups} look-ups of present keys, {relocations} relocations");
    assert!(look_ups > 100_000 && relocations > 10_000);
}

/// Threads that each remove and insert again what only they own, all in one full table.
#[test]
fn removes_of_present_keys_never_fail() {
    for slots in 2..=6 {
        let filter = filter(slots, 500, 2);
        let keys = (filter.buckets() as f64 * slots as f64 * (load(slots) - 0.03)) as u64;
        (0..keys).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
        let threads = 4;
        let rounds = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..threads {
                let (filter, rounds) = (&filter, &rounds);
                scope.spawn(move || {
                    let started = Instant::now();
                    let mut own: Vec<u64> = (thread..keys).step_by(threads as usize).collect();
                    while started.elapsed() < duration() / 5 {
                        for key in &mut own {
                            assert!(filter.remove_hash(mixed(*key)), "a present key was not removed");
                            *key += keys;
                            while let Err(error) = filter.insert_hash(mixed(*key)) {
                                assert_eq!(error, InsertError::Full);
                                *key += keys;
                            }
                            assert!(filter.contains_hash(mixed(*key)));
                            rounds.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    own.into_iter().for_each(|key| assert!(filter.remove_hash(mixed(key))));
                });
            }
        });
        assert!(rounds.into_inner() > 10_000);
        assert!(filter.is_empty());
    }
}

/// Of threads that insert the same keys at once exactly one wins each, with other keys displaced and relocating meanwhile.
#[test]
fn insert_if_absent_has_one_winner() {
    for slots in 2..=6 {
        let filter = filter(slots, 2_000, 3);
        let room = filter.buckets() as f64 * slots as f64;
        let resident = fill(&filter, 0.3);
        let contested = (room * (load(slots) - 0.3 - 0.05)) as u64;
        // A key whose class is taken by another key has no winner; leave those out.
        let mut classes: std::collections::HashSet<_> =
            (0..resident).map(|key| filter.class_of_hash(mixed(key))).collect();
        let keys: Vec<u64> = (resident..resident + contested)
            .map(mixed)
            .filter(|key| classes.insert(filter.class_of_hash(*key)))
            .collect();
        let threads = 4;
        let barrier = Barrier::new(threads);
        let stop = AtomicBool::new(false);
        let wins: Vec<Vec<bool>> = thread::scope(|scope| {
            let churn = scope.spawn(|| {
                // Makes relocations: other classes that come and go at a high load.
                let mut random = Random::new(9);
                while !stop.load(Ordering::Relaxed) {
                    let key = mixed(1 << 50 | random.below(1 << 30));
                    if !classes.contains(&filter.class_of_hash(key)) && filter.insert_hash(key).is_ok() {
                        assert!(filter.remove_hash(key));
                    }
                }
            });
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        keys.iter().map(|key| filter.insert_if_absent_hash(*key).unwrap()).collect::<Vec<_>>()
                    })
                })
                .collect();
            let wins = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
            stop.store(true, Ordering::Relaxed);
            churn.join().unwrap();
            wins
        });
        for (index, key) in keys.iter().enumerate() {
            let winners = wins.iter().filter(|wins| wins[index]).count();
            assert_eq!(winners, 1, "key {key}, {slots} slots");
            assert_eq!(filter.count_hash(*key), 1);
        }
        assert_eq!(filter.len(), resident as usize + keys.len());
    }
}

/// Two threads that remove one key are over-removing; whatever they get, both return, and no other class suffers.
#[test]
fn racing_removes_of_one_key_end() {
    let filter = filter(2, 30, 4);
    let resident = fill(&filter, 0.5);
    let barrier = Barrier::new(2);
    let key = mixed(1 << 40);
    let shared = (0..resident).filter(|other| filter.class_of_hash(mixed(*other)) == filter.class_of_hash(key)).count();
    assert_eq!(shared, 0, "the class is nobody else's");
    thread::scope(|scope| {
        for first in [true, false] {
            let (filter, barrier) = (&filter, &barrier);
            scope.spawn(move || {
                for _ in 0..20_000 {
                    if first {
                        filter.insert_hash(key).unwrap();
                    }
                    barrier.wait();
                    filter.remove_hash(key);
                    barrier.wait();
                }
            });
        }
    });
    (0..resident).for_each(|key| assert!(filter.contains_hash(mixed(key))));
    assert_eq!(filter.count_hash(key), 0);
    assert_eq!(filter.len() as u64, resident);
}

/// What threads do again because of each other is counted, each way on its own; what a thread does alone is done once.
#[test]
fn what_is_done_again_is_counted() {
    let filter = filter(4, 50, 5);
    let resident = fill(&filter, 0.85);
    let own_keys = |writer: u64| (0..4_u64).map(move |key| mixed((writer + 1) << 40 | key));
    let change = |writer: u64| {
        own_keys(writer).for_each(|key| filter.insert_hash(key).unwrap());
        own_keys(writer).for_each(|key| assert!(filter.remove_hash(key)));
    };
    let absent: Vec<u64> = (resident..resident + 1_000).map(mixed).collect();
    let look_up = || absent.iter().filter(|key| filter.contains_hash(**key)).count();
    let look_up_many = || {
        let mut found = vec![false; absent.len()];
        filter.contains_hashes(&absent, &mut found);
        found.into_iter().filter(|found| *found).count()
    };
    (0..1_000).for_each(|_| change(0));
    look_up();
    look_up_many();
    let alone = filter.stats();
    assert!(alone.relocations > 0);
    assert_eq!((alone.cas_retries, alone.sequence_retries, alone.retries), (0, 0, 0));

    let cas_retries = || filter.stats().cas_retries;
    let sequence_retries = || filter.stats().sequence_retries;
    let writer = || change(1);
    beside(&writer, &|| change(0), &cas_retries);
    beside(&writer, &|| _ = look_up(), &sequence_retries);
    beside(&writer, &|| _ = look_up_many(), &sequence_retries);
    assert!((0..resident).all(|key| filter.contains_hash(mixed(key))));
    assert_eq!(filter.len() as u64, resident);
}

/// Has one thread do `other` over and over while this one does `own`, until `count` has grown.
fn beside(other: &(impl Fn() + Sync), own: &impl Fn(), count: &impl Fn() -> u64) {
    let (before, started, stop) = (count(), Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other();
            }
        });
        while count() == before && started.elapsed() < Duration::from_secs(60) {
            own();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(count() > before, "nothing was done again in a minute");
}

#[test]
fn filters_are_shared_between_threads() {
    fn is_shareable<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe + Unpin>() {}
    is_shareable::<CuckooFilter<u64>>();
    is_shareable::<CuckooFilter<str>>();
    // The keys themselves are never stored, so their type does not matter.
    is_shareable::<CuckooFilter<std::rc::Rc<std::cell::Cell<u8>>>>();
}

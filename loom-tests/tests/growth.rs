//! The rules of growth (section 8 of `docs/design.md`), each in the smallest scenario that needs it, on the real operations.
//!
//! Filters start with two buckets of two slots. `K` is the class under test with base buckets 0 (home) and 1 (away); others are named after theirs.
//! The memory of a table that was left is given back, which means zeros, as soon as that is allowed: every scenario is about that too.

#![cfg(loom)]

use koel::model::{GrowthKey, GrowthModel};
use koel_loom_tests::explore;
use loom::{sync::Arc, thread};

const OUT: bool = true;

/// How the copy of `K` lies when a scenario begins.
#[derive(Clone, Copy, Debug)]
enum At {
    Home,
    /// Displaced; its home bucket is drained before the copy.
    Away,
    /// Displaced; its home bucket is drained after the copy.
    AwayFirst,
}

const ALL: [At; 3] = [At::Home, At::Away, At::AwayFirst];

/// A filter of two buckets with `K` in it.
fn with_key(at: At) -> (Arc<GrowthModel>, GrowthKey) {
    with_key_and_slots(at, 2)
}

fn with_key_and_slots(at: At, slots: usize) -> (Arc<GrowthModel>, GrowthKey) {
    let model = GrowthModel::new(slots, 2, 2);
    let (home, away) = if matches!(at, At::AwayFirst) { (1, 0) } else { (0, 1) };
    let k = model.key(home, away, 0, 0);
    model.insert(k).unwrap();
    if !matches!(at, At::Home) {
        assert!(model.relocate(k, OUT));
    }
    (Arc::new(model), k)
}

/// Runs `work` in a thread of its own.
fn spawn<T: 'static>(
    model: &Arc<GrowthModel>,
    work: impl FnOnce(&GrowthModel) -> T + 'static,
) -> thread::JoinHandle<T> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

/// Where a thread may be stopped until two growths are over, one preemption is all it takes for that; more would take too long.
const fn preemptions(growths: u32) -> Option<usize> {
    Some(if growths == 1 { 2 } else { 1 })
}

fn grow_and_drain(model: &GrowthModel) {
    model.grow();
    model.finish_draining();
}

/// What has to hold when nobody is at work and nothing is draining: each class has as many copies as keys, the counts are exact.
fn check_at_rest(model: &GrowthModel, doublings: u32, keys: &[(GrowthKey, usize)]) {
    model.finish_draining();
    assert!(!model.is_draining());
    assert_eq!(model.doublings(), doublings);
    for (key, count) in keys {
        assert_eq!(model.count(*key), *count, "copies of {key:?}");
        assert_eq!(model.contains(*key), *count > 0);
    }
    let keys: usize = keys.iter().map(|(_, count)| count).sum();
    let (taken, displaced) = model.totals();
    assert_eq!(taken, keys, "slots taken");
    assert_eq!(model.keys(), keys, "len");
    assert!(displaced <= keys as u64, "displaced counts");
}

/// A reader never misses `K` while `other` works on a filter that `prepare` made of one with `K` in it.
fn reader_sees(
    name: &str,
    preemptions: usize,
    floors: [usize; 3],
    prepare: fn(&GrowthModel),
    other: fn(&GrowthModel, GrowthKey),
    doublings: u32,
) {
    for (at, floor) in ALL.into_iter().zip(floors) {
        explore(&format!("{name}, {at:?}"), Some(preemptions), floor, move || {
            let (model, k) = with_key(at);
            prepare(&model);
            let other = spawn(&model, move |model| other(model, k));
            assert!(model.contains(k), "false negative");
            other.join().unwrap();
            check_at_rest(&model, doublings, &[(k, 1)]);
        });
    }
}

#[test]
fn reader_against_growth() {
    reader_sees("reader against growth", 2, [950, 1_900, 16_000], |_| (), |model, _| grow_and_drain(model), 1);
}

#[test]
fn reader_against_drain() {
    reader_sees(
        "reader against drain",
        3,
        [40, 2_500, 2_500],
        GrowthModel::grow,
        |model, _| model.finish_draining(),
        1,
    );
}

/// The reader can stop anywhere, until the table that it saw first is the one before the last.
#[test]
fn reader_against_two_growths() {
    let rest = |model: &GrowthModel, _| {
        model.finish_draining();
        grow_and_drain(model);
    };
    reader_sees("reader against two growths", 1, [2_300, 13_000, 50_000], GrowthModel::grow, rest, 2);
}

/// A batch sees a table that is then left, or one that is being left.
#[test]
fn batch_reader_against_growth() {
    for (name, draining) in [("batch against growth", false), ("batch against drain", true)] {
        // At home one word answers, so that there is little to be interleaved: therefore one preemption more.
        for (at, bound, floor) in [(At::Home, 3, 2_500), (At::Away, 2, 14_000), (At::AwayFirst, 2, 30_000)] {
            explore(&format!("{name}, {at:?}"), Some(bound), floor, move || {
                let (model, k) = with_key_and_slots(at, 6);
                if draining {
                    model.grow();
                }
                let other = spawn(&model, grow_and_drain);
                assert!(model.contains_batch(k), "false negative");
                other.join().unwrap();
                check_at_rest(&model, 1, &[(k, 1)]);
            });
        }
    }
}

/// `K` moves while its table is drained.
#[test]
fn reader_against_drain_and_mover() {
    explore("reader against drain and mover", Some(2), 9_000, || {
        let (model, k) = with_key(At::Home);
        model.grow();
        let drainer = spawn(&model, GrowthModel::finish_draining);
        let mover = spawn(&model, move |model| model.relocate(k, OUT));
        assert!(model.contains(k), "false negative");
        drainer.join().unwrap();
        mover.join().unwrap();
        check_at_rest(&model, 1, &[(k, 1)]);
    });
}

/// Whoever has seen the table of before puts nothing where nobody looks.
#[test]
fn inserter_against_growth() {
    for (name, growths, floor) in [("inserter against growth", 1, 3_500), ("inserter against two growths", 2, 1_000)] {
        explore(name, preemptions(growths), floor, move || {
            let (model, k) = with_key(At::Home);
            let inserter = spawn(&model, move |model| model.insert(k).unwrap());
            (0..growths).for_each(|_| grow_and_drain(&model));
            inserter.join().unwrap();
            check_at_rest(&model, growths, &[(k, 2)]);
        });
    }
}

/// The home bucket is full: the new key is displaced.
#[test]
fn displaced_inserter_against_growth() {
    for (growths, floor) in [(1, 6_000), (2, 2_900)] {
        explore(&format!("displaced inserter against {growths} growths"), preemptions(growths), floor, move || {
            let (model, k) = with_key(At::Home);
            let j = model.key(0, 1, 2, 0);
            model.insert(j).unwrap();
            let inserter = spawn(&model, move |model| model.insert(k).unwrap());
            (0..growths).for_each(|_| grow_and_drain(&model));
            inserter.join().unwrap();
            check_at_rest(&model, growths, &[(k, 2), (j, 1)]);
        });
    }
}

#[test]
fn remover_against_growth() {
    for at in ALL {
        for (growths, floor) in [(1, 500), (2, 380)] {
            explore(&format!("remover against {growths} growths, {at:?}"), preemptions(growths), floor, move || {
                let (model, k) = with_key(at);
                let remover = spawn(&model, move |model| model.remove(k));
                (0..growths).for_each(|_| grow_and_drain(&model));
                assert!(remover.join().unwrap(), "a key that is in was not removed");
                check_at_rest(&model, growths, &[(k, 0)]);
            });
        }
    }
}

#[test]
fn mover_against_growth() {
    for at in ALL {
        for (growths, floor) in [(1, 1_700), (2, 8_000)] {
            explore(&format!("mover against {growths} growths, {at:?}"), Some(2), floor, move || {
                let (model, k) = with_key(at);
                let mover = spawn(&model, move |model| model.relocate(k, matches!(at, At::Home)));
                (0..growths).for_each(|_| grow_and_drain(&model));
                mover.join().unwrap();
                check_at_rest(&model, growths, &[(k, 1)]);
            });
        }
    }
}

/// Two drain the same bucket; one of them may stop until the next growth is over.
#[test]
fn two_drainers() {
    for at in ALL {
        explore(&format!("two drainers, {at:?}"), Some(2), 3_000, move || {
            let (model, k) = with_key(at);
            model.grow();
            let drainer = spawn(&model, |model| {
                model.drain(1);
            });
            model.finish_draining();
            grow_and_drain(&model);
            drainer.join().unwrap();
            check_at_rest(&model, 2, &[(k, 1)]);
        });
    }
}

/// A full table, and two keys that find no room: one growth.
#[test]
fn two_growers() {
    explore("two growers", Some(1), 14_000, || {
        let model = Arc::new(GrowthModel::new(2, 2, 2));
        let keys = [0, 1, 2, 3].map(|top| model.key(0, 1, top, 0));
        keys.iter().for_each(|key| model.insert(*key).unwrap());
        let [first, second] = [0, 3].map(|top| model.key(0, 1, top, 1));
        let other = spawn(&model, move |model| model.insert(first).unwrap());
        model.insert(second).unwrap();
        other.join().unwrap();
        let all: Vec<_> = keys.into_iter().chain([first, second]).map(|key| (key, 1)).collect();
        check_at_rest(&model, 1, &all);
    });
}

#[test]
fn insert_if_absent_has_one_winner_during_growth() {
    explore("insert_if_absent during growth", Some(1), 4_000, || {
        let model = Arc::new(GrowthModel::new(2, 2, 1));
        let k = model.key(0, 1, 0, 0);
        let other = spawn(&model, move |model| model.insert_if_absent(k).unwrap());
        let grower = spawn(&model, grow_and_drain);
        let won = model.insert_if_absent(k).unwrap();
        assert!(won != other.join().unwrap(), "one winner");
        grower.join().unwrap();
        check_at_rest(&model, 1, &[(k, 1)]);
    });
}

/// The copies of an old bucket find room in the new ones, however many keys come meanwhile.
#[test]
fn drain_has_room_despite_inserts() {
    explore("drain against inserts", Some(2), 6_000, || {
        let (model, k) = with_key(At::Home);
        let [j, l] = [1, 2].map(|nth| model.key(0, 1, 0, nth));
        model.insert(j).unwrap();
        model.grow();
        let inserter = spawn(&model, move |model| {
            model.insert(l).unwrap();
            model.insert(l).unwrap();
        });
        model.drain_rest();
        inserter.join().unwrap();
        assert!(model.drain_rest(), "there is no room for what is left");
        check_at_rest(&model, 1, &[(k, 1), (j, 1), (l, 2)]);
    });
}

/// The memory of a table that was left is given back when those are gone who may still write to it: here the gate says so, which the other scenarios leave out.
#[test]
fn mover_against_giving_back() {
    explore("mover against giving back", Some(2), 300, || {
        let model = GrowthModel::with_snapshots(2, 2, 2);
        let k = model.key(0, 1, 0, 0);
        model.insert(k).unwrap();
        assert!(model.relocate(k, OUT));
        model.grow();
        let model = Arc::new(model);
        let mover = spawn(&model, move |model| model.relocate_in_older(k));
        model.finish_draining();
        mover.join().unwrap();
        check_at_rest(&model, 1, &[(k, 1)]);
    });
}

//! The gate of snapshots (section 9 of `docs/design.md`): a snapshot beside each operation that changes more than one word, and beside those that one word decides.
//!
//! Tables have two or three buckets of two slots. `K` is the class under test with home 0 and away 1, `J` another with the same buckets. A copy goes from bucket 0 on.

#![cfg(loom)]

use koel::model::{GrowthModel, Key, Model, SnapshotModel};
use koel_loom_tests::explore;
use loom::{sync::Arc, thread};

const OUT: bool = true;
const IN: bool = false;

fn two_buckets() -> (Arc<Model>, Key, Key) {
    let model = Model::with_snapshots(2, 2);
    let (k, j) = (model.key(0, 1, 0), model.key(0, 1, 1));
    (Arc::new(model), k, j)
}

/// Runs `work` in a thread of its own.
fn spawn<M: Send + Sync + 'static, T: 'static>(
    model: &Arc<M>,
    work: impl FnOnce(&M) -> T + 'static,
) -> thread::JoinHandle<T> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

/// A class is in a snapshot so many times, in all ways of looking.
#[track_caller]
fn assert_copies(snapshot: &SnapshotModel, key: Key, copies: usize) {
    assert_eq!(snapshot.count(key), copies, "copies in the snapshot: {snapshot:?}");
    assert_eq!(snapshot.contains_home_first(key), copies > 0, "the displaced count of the snapshot: {snapshot:?}");
}

/// Either way: a copy moves from the word that is copied last to the one that is copied first, or from the first to the last.
#[test]
fn snapshot_against_relocation() {
    for direction in [OUT, IN] {
        explore("snapshot against relocation", None, 300, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            if direction == IN {
                assert!(model.relocate(k, OUT));
            }
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            let snapshot = model.snapshot();
            assert_copies(&snapshot, k, 1);
            assert!(mover.join().unwrap());
            assert!(model.contains_both(k));
        });
    }
}

/// The insert raises a count, then places a displaced copy; the snapshot has both or neither.
#[test]
fn snapshot_against_displaced_insert() {
    explore("snapshot against displaced insert", None, 450, || {
        let (model, k, j) = two_buckets();
        model.insert(j).unwrap();
        model.insert(j).unwrap();
        let inserter = spawn(&model, move |model| model.insert(k).unwrap());
        let snapshot = model.snapshot();
        let copies = snapshot.count(k);
        assert_copies(&snapshot, k, copies);
        assert_copies(&snapshot, j, 2);
        assert_eq!(snapshot.displaced_count(0), copies as u64, "the count is exact");
        inserter.join().unwrap();
        assert_copies(&model.snapshot(), k, 1);
    });
}

/// A kick moves a fingerprint from bucket 1 to 2 and puts another in its place.
#[test]
fn snapshot_against_kick() {
    explore("snapshot against kick", None, 450, || {
        let model = Model::with_snapshots(2, 3);
        let (a, b, c) = (model.key(0, 1, 0), model.key(0, 1, 1), model.key(0, 1, 2));
        let d = model.key(1, 2, 0);
        let model = Arc::new(model);
        for key in [a, b, d, d] {
            model.insert(key).unwrap();
        }
        let kicker = spawn(&model, move |model| model.insert(c).unwrap());
        let snapshot = model.snapshot();
        for (key, copies) in [(a, 1), (b, 1), (d, 2)] {
            assert_copies(&snapshot, key, copies);
        }
        kicker.join().unwrap();
    });
}

/// `K` has a displaced copy, and one at home that comes and goes by one word: the removal, which has to look at both, passes the gate.
#[test]
fn snapshot_against_insert_and_remove() {
    explore("snapshot against insert and remove", None, 1_200, || {
        let (model, k, _) = two_buckets();
        model.insert(k).unwrap();
        assert!(model.relocate(k, OUT));
        let other = spawn(&model, move |model| {
            model.insert(k).unwrap();
            assert!(model.remove(k));
        });
        let snapshot = model.snapshot();
        let copies = snapshot.count(k);
        assert!((1..=2).contains(&copies), "{copies} copies");
        assert_copies(&snapshot, k, copies);
        other.join().unwrap();
        assert_copies(&model.snapshot(), k, 1);
    });
}

/// The removal takes a displaced copy, then lowers its count; the snapshot has both or neither.
#[test]
fn snapshot_against_removal() {
    explore("snapshot against removal", None, 100, || {
        let (model, k, j) = two_buckets();
        model.insert(k).unwrap();
        model.insert(j).unwrap();
        assert!(model.relocate(j, OUT));
        let remover = spawn(&model, move |model| assert!(model.remove(j)));
        let snapshot = model.snapshot();
        assert_copies(&snapshot, k, 1);
        assert_eq!(snapshot.displaced_count(0), snapshot.count(j) as u64, "the count is exact");
        remover.join().unwrap();
    });
}

/// What one word decides never waits, and the snapshot has what was there all the time.
#[test]
fn snapshot_against_single_words() {
    explore("snapshot against single words", None, 12, || {
        let (model, k, j) = two_buckets();
        model.insert(k).unwrap();
        let other = spawn(&model, move |model| {
            model.insert(j).unwrap();
            assert!(model.remove(j));
        });
        let snapshot = model.snapshot();
        assert_copies(&snapshot, k, 1);
        other.join().unwrap();
    });
}

/// The mover waits for the first snapshot, if it does not come before it, and goes before the second or after it.
#[test]
fn snapshots_in_a_row_against_mover() {
    explore("snapshots in a row", None, 45_000, || {
        let (model, k, _) = two_buckets();
        model.insert(k).unwrap();
        let mover = spawn(&model, move |model| model.relocate(k, OUT));
        assert_copies(&model.snapshot(), k, 1);
        assert_copies(&model.snapshot(), k, 1);
        assert!(mover.join().unwrap());
    });
}

/// Snapshots wait for each other. (With a mover as well, two threads would wait at once, which loom explores without end.)
#[test]
fn two_snapshots() {
    explore("two snapshots", None, 9, || {
        let (model, k, _) = two_buckets();
        model.insert(k).unwrap();
        let other = spawn(&model, move |model| assert_copies(&model.snapshot(), k, 1));
        assert_copies(&model.snapshot(), k, 1);
        other.join().unwrap();
    });
}

/// The filter grows and is drained while the snapshot is taken; or it is being drained already, and the snapshot finishes that.
#[test]
fn snapshot_against_growth() {
    for (draining, displaced, floor) in [(false, false, 220), (false, true, 220), (true, false, 100), (true, true, 100)]
    {
        explore(&format!("snapshot against growth, {draining}, {displaced}"), Some(2), floor, move || {
            let model = GrowthModel::with_snapshots(2, 2, 1);
            let k = model.key(0, 1, 0, 0);
            model.insert(k).unwrap();
            if displaced {
                assert!(model.relocate(k, OUT));
            }
            if draining {
                model.grow();
            }
            let model = Arc::new(model);
            let other = spawn(&model, move |model: &GrowthModel| {
                if !draining {
                    model.grow();
                }
                model.finish_draining();
            });
            assert_eq!(model.in_snapshot(k), (1, true), "in the snapshot");
            other.join().unwrap();
            assert_eq!(model.in_snapshot(k), (1, true));
            assert_eq!(model.doublings(), 1);
        });
    }
}

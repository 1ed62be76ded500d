//! The concurrent rules of `docs/design.md`, each in the smallest scenario that needs it, on the real operations.
//!
//! Tables have two or three buckets of two slots. `K` is the class under test with home 0 and away 1; `J` is another class with the same buckets.

#![cfg(loom)]

use koel::{
    InsertError,
    model::{Key, Model},
};
use koel_loom_tests::explore;
use loom::{sync::Arc, thread};

const OUT: bool = true;
const IN: bool = false;

/// A table of two buckets with two slots each, and two classes with home 0 and away 1.
fn two_buckets() -> (Arc<Model>, Key, Key) {
    let model = Model::new(2, 2);
    let (k, j) = (model.key(0, 1, 0), model.key(0, 1, 1));
    (Arc::new(model), k, j)
}

/// Runs `work` in a thread of its own.
fn spawn<T: 'static>(model: &Arc<Model>, work: impl FnOnce(&Model) -> T + 'static) -> thread::JoinHandle<T> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

/// What has to hold when nobody is at work: each class has as many copies as keys, and the counts are exact.
fn check_at_rest(model: &Model, keys: &[(Key, usize)], displaced: &[u64]) {
    for (key, count) in keys {
        assert_eq!(model.count(*key), *count, "copies of {key:?}");
        assert_eq!(model.contains_both(*key), *count > 0);
        assert_eq!(model.contains_home_first(*key), *count > 0);
    }
    let keys: usize = keys.iter().map(|(_, count)| count).sum();
    assert_eq!(model.taken(), keys, "slots taken");
    assert_eq!(model.len(), keys, "len");
    for (bucket, count) in displaced.iter().enumerate() {
        assert_eq!(model.displaced_count(bucket), *count, "displaced count of bucket {bucket}");
    }
}

/// A reader with each form of the look-up (that which starts with the home bucket is often through after one read) never misses `K` while `others` work on a table that `prepare` made.
fn reader_sees(
    name: &str,
    preemptions: Option<usize>,
    floors: [usize; 2],
    prepare: impl Fn(&Model, Key, Key) + Sync + Send + Copy + 'static,
    others: impl Fn(&Model, Key, Key) + Sync + Send + Copy + 'static,
) {
    type LookUp = fn(&Model, Key) -> bool;
    let forms: [(&str, LookUp); 2] = [("both", Model::contains_both), ("home first", Model::contains_home_first)];
    for ((form, contains), floor) in forms.into_iter().zip(floors) {
        explore(&format!("{name}, {form}"), preemptions, floor, move || {
            let (model, k, j) = two_buckets();
            prepare(&model, k, j);
            let other = spawn(&model, move |model| others(model, k, j));
            assert!(contains(&model, k), "false negative");
            other.join().unwrap();
            assert!(model.contains_both(k) && model.contains_home_first(k));
        });
    }
}

#[test]
fn reader_against_relocation_outward() {
    reader_sees(
        "relocation outward",
        None,
        [500, 13],
        |model, k, _| model.insert(k).unwrap(),
        |model, k, _| assert!(model.relocate(k, OUT)),
    );
}

#[test]
fn reader_against_relocation_inward() {
    reader_sees(
        "relocation inward",
        None,
        [500, 2_000],
        |model, k, _| {
            model.insert(k).unwrap();
            assert!(model.relocate(k, OUT));
        },
        |model, k, _| assert!(model.relocate(k, IN)),
    );
}

#[test]
fn reader_against_chained_relocations() {
    reader_sees(
        "out and in",
        Some(2),
        [5_000, 100],
        |model, k, _| model.insert(k).unwrap(),
        |model, k, _| assert!(model.relocate(k, OUT) && model.relocate(k, IN)),
    );
    reader_sees(
        "in and out",
        Some(3),
        [700, 1_500],
        |model, k, _| {
            model.insert(k).unwrap();
            assert!(model.relocate(k, OUT));
        },
        |model, k, _| assert!(model.relocate(k, IN) && model.relocate(k, OUT)),
    );
}

/// What `contains` does when it has to look again, `count` does at once.
#[test]
fn count_against_relocation() {
    for direction in [OUT, IN] {
        explore("count against relocation", Some(2), 300, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            if direction == IN {
                assert!(model.relocate(k, OUT));
            }
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            let seen = model.count(k);
            assert!(seen == 1 || seen == 2, "{seen} copies");
            mover.join().unwrap();
            assert_eq!(model.count(k), 1);
        });
    }
}

/// The second key of the class goes to the away bucket, since home is full; removing it takes the copy in home.
#[test]
fn reader_against_insert_and_remove_of_its_class() {
    reader_sees(
        "insert and remove of its class",
        None,
        [800, 16],
        |model, k, j| {
            model.insert(k).unwrap();
            model.insert(j).unwrap();
        },
        |model, k, _| {
            model.insert(k).unwrap();
            assert!(model.remove(k));
        },
    );
}

/// The class has a displaced copy already, and the one at home comes and goes.
#[test]
fn reader_against_insert_and_remove_at_home() {
    reader_sees(
        "insert and remove at home",
        None,
        [100, 400],
        |model, k, _| {
            model.insert(k).unwrap();
            assert!(model.relocate(k, OUT));
        },
        |model, k, _| {
            model.insert(k).unwrap();
            assert!(model.remove(k));
        },
    );
}

/// The other class of the same home comes as a displaced copy and goes.
#[test]
fn reader_against_displaced_insert_and_remove_of_another_class() {
    reader_sees(
        "another class",
        None,
        [2_000, 18],
        |model, k, _| {
            model.insert(k).unwrap();
            model.insert(k).unwrap();
            assert!(model.remove(k));
            assert!(model.relocate(k, OUT));
            model.insert(k).unwrap();
            model.insert(k).unwrap();
        },
        |model, _, j| {
            model.insert(j).unwrap();
            assert!(model.remove(j));
        },
    );
}

/// A whole kick by the real search: both buckets are full, a third is empty.
#[test]
fn reader_against_kick() {
    explore("kick", Some(2), 1_500, || {
        let model = Model::new(2, 3);
        let (a, b, c) = (model.key(0, 1, 0), model.key(0, 1, 1), model.key(0, 1, 2));
        let d = model.key(1, 2, 0);
        let model = Arc::new(model);
        for key in [a, b, d, d] {
            model.insert(key).unwrap();
        }
        // Bucket 0 holds a and b, bucket 1 holds d twice, bucket 2 is empty: c makes a d move.
        let kicker = spawn(&model, move |model| model.insert(c).unwrap());
        assert!(model.contains_both(d) && model.contains_home_first(d));
        assert!(model.contains_both(a) && model.contains_home_first(b));
        kicker.join().unwrap();
        check_at_rest(&model, &[(a, 1), (b, 1), (c, 1), (d, 2)], &[1, 1, 0]);
    });
}

/// As above, with a path of two relocations.
#[test]
fn reader_against_kick_of_two_hops() {
    explore("kick of two hops", Some(2), 1_500, || {
        let model = Model::new(2, 4);
        let (a, b, c) = (model.key(0, 1, 0), model.key(0, 1, 1), model.key(0, 1, 2));
        let (d, e) = (model.key(1, 2, 0), model.key(2, 3, 0));
        let model = Arc::new(model);
        for key in [a, b, d, d, e, e] {
            model.insert(key).unwrap();
        }
        // Buckets 0 to 2 are full: c makes an e move to bucket 3, then a d to bucket 2.
        let kicker = spawn(&model, move |model| model.insert(c).unwrap());
        assert!(model.contains_both(d) && model.contains_home_first(d), "false negative");
        assert!(model.contains_both(e) && model.contains_home_first(e), "false negative");
        kicker.join().unwrap();
        check_at_rest(&model, &[(a, 1), (b, 1), (c, 1), (d, 2), (e, 2)], &[1, 1, 1, 0]);
    });
}

/// A relocation loses the last slot of the away bucket to an insert. The counts stay exact.
#[test]
fn lost_relocation_leaves_counts() {
    explore("lost relocation", None, 130, || {
        let (model, k, _) = two_buckets();
        let (m, n) = (model.key(1, 0, 0), model.key(1, 0, 1));
        model.insert(k).unwrap();
        model.insert(m).unwrap();
        let mover = spawn(&model, move |model| model.relocate(k, OUT));
        model.insert(n).unwrap();
        let moved = mover.join().unwrap();
        assert!(model.displaced_count(0) == u64::from(moved));
        assert!([k, m, n].iter().all(|key| model.count(*key) == 1));
    });
}

/// The batched look-ups, of a table in cache and of one in memory, against relocations and against an insert and removal of the class.
#[test]
fn batch_reader_against_relocation() {
    for (cached, floors) in [(true, [1_500, 1_000]), (false, [13, 1_000])] {
        for (direction, floor) in [OUT, IN].into_iter().zip(floors) {
            explore("batch against relocation", None, floor, move || {
                let model = Arc::new(Model::new(6, 2));
                let k = model.key(0, 1, 0);
                model.insert(k).unwrap();
                if direction == IN {
                    assert!(model.relocate(k, OUT));
                }
                let mover = spawn(&model, move |model| model.relocate(k, direction));
                assert!(model.contains_batch(k, cached), "false negative");
                mover.join().unwrap();
                assert!(model.contains_batch(k, cached));
            });
        }
    }
}

/// As above, with a chain of moves, so that the staged batch meets the class in neither place it looked at first.
#[test]
fn batch_reader_against_chained_relocations() {
    for cached in [true, false] {
        explore("batch against out and in", Some(3), 1_500, move || {
            let model = Arc::new(Model::new(6, 2));
            let k = model.key(0, 1, 0);
            model.insert(k).unwrap();
            assert!(model.relocate(k, OUT));
            let mover = spawn(&model, move |model| model.relocate(k, IN) && model.relocate(k, OUT));
            assert!(model.contains_batch(k, cached), "false negative");
            mover.join().unwrap();
        });
    }
}

#[test]
fn remover_against_mover() {
    for direction in [OUT, IN] {
        explore("remover against mover", None, 300, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            if direction == IN {
                assert!(model.relocate(k, OUT));
            }
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            assert!(model.remove(k), "a present key is removed");
            mover.join().unwrap();
            check_at_rest(&model, &[(k, 0)], &[0, 0]);
        });
    }
}

/// Two keys of the class: one is removed while one copy moves, the other must stay.
#[test]
fn remover_against_mover_of_its_class() {
    for direction in [OUT, IN] {
        explore("remover against mover, two copies", Some(3), 1_000, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            assert!(model.relocate(k, OUT));
            model.insert(k).unwrap();
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            assert!(model.remove(k), "a present key is removed");
            assert!(model.contains_both(k) && model.contains_home_first(k), "false negative");
            mover.join().unwrap();
            let displaced = u64::from(model.displaced_count(0) != 0);
            check_at_rest(&model, &[(k, 1)], &[displaced, 0]);
        });
    }
}

#[test]
fn two_movers() {
    for (one, other) in [(OUT, OUT), (OUT, IN), (IN, IN)] {
        explore("two movers", Some(3), 1_000, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            if one == IN {
                assert!(model.relocate(k, OUT));
            }
            let first = spawn(&model, move |model| model.relocate(k, one));
            model.relocate(k, other);
            assert!(model.contains_both(k), "false negative");
            assert!(model.contains_home_first(k), "false negative");
            first.join().unwrap();
            let displaced = u64::from(model.displaced_count(0) != 0);
            check_at_rest(&model, &[(k, 1)], &[displaced, 0]);
        });
    }
}

/// `J` is displaced all the time; `K`, of the same home, moves out and in at once. `J`'s share of the count may never be missing.
#[test]
fn reader_against_two_movers_of_another_class() {
    explore("two movers of another class", Some(3), 30_000, || {
        let (model, k, j) = two_buckets();
        model.insert(j).unwrap();
        assert!(model.relocate(j, OUT));
        model.insert(k).unwrap();
        let outward = spawn(&model, move |model| model.relocate(k, OUT));
        let inward = spawn(&model, move |model| model.relocate(k, IN));
        assert!(model.contains_home_first(j), "false negative");
        outward.join().unwrap();
        inward.join().unwrap();
        assert!(model.contains_home_first(k) && model.contains_home_first(j));
    });
}

/// A displaced insert of `K` is moved home as soon as it is visible. `J`'s share of the count may never be missing.
#[test]
fn reader_against_displaced_insert_and_mover() {
    explore("displaced insert and mover", Some(3), 25_000, || {
        let (model, k, j) = two_buckets();
        let l = model.key(0, 1, 2);
        model.insert(j).unwrap();
        assert!(model.relocate(j, OUT));
        model.insert(l).unwrap();
        model.insert(l).unwrap();
        let inserter = spawn(&model, move |model| model.insert(k).unwrap());
        let mover = spawn(&model, move |model| {
            assert!(model.remove(l));
            model.relocate(k, IN)
        });
        assert!(model.contains_home_first(j), "false negative");
        inserter.join().unwrap();
        mover.join().unwrap();
        let displaced = model.displaced_count(0);
        check_at_rest(&model, &[(k, 1), (j, 1), (l, 1)], &[displaced, 0]);
        assert!(displaced == 1 || displaced == 2);
    });
}

/// One key, two removers: over-removal, which may answer anything but has to end, with a mover beside it.
#[test]
fn relocation_against_two_removes_of_one_key_ends() {
    for direction in [OUT, IN] {
        explore("two removes of one key and a mover", Some(2), 100, move || {
            let (model, k, j) = two_buckets();
            model.insert(k).unwrap();
            model.insert(j).unwrap();
            if direction == IN {
                assert!(model.relocate(k, OUT));
            }
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            let remover = spawn(&model, move |model| model.remove(k));
            let here = model.remove(k);
            let there = remover.join().unwrap();
            mover.join().unwrap();
            assert!(here || there);
            assert_eq!(model.count(k), 0);
            check_at_rest(&model, &[(k, 0), (j, 1)], &[0, 0]);
        });
    }
}

/// Two inserts race for the last slot of the away bucket. The one that fails leaves the counts as they were.
#[test]
fn failed_insert_leaves_counts() {
    explore("failed insert", None, 1_800, || {
        let (model, k, j) = two_buckets();
        for key in [j, j, j] {
            model.insert(key).unwrap();
        }
        assert_eq!(model.displaced_count(0), 1);
        let other = spawn(&model, move |model| model.insert(k));
        let here = model.insert(k);
        let there = other.join().unwrap();
        assert!(here.is_ok() != there.is_ok(), "one slot, one winner: {here:?} {there:?}");
        assert_eq!(here.and(there), Err(InsertError::Full));
        check_at_rest(&model, &[(k, 1), (j, 3)], &[2, 0]);
    });
}

#[test]
fn insert_if_absent_has_one_winner() {
    explore("insert if absent", None, 9, || {
        let (model, k, j) = two_buckets();
        model.insert(j).unwrap();
        let other = spawn(&model, move |model| model.insert_if_absent(k).unwrap());
        let here = model.insert_if_absent(k).unwrap();
        assert!(here != other.join().unwrap(), "exactly one winner");
        check_at_rest(&model, &[(k, 1), (j, 1)], &[0, 0]);
    });
}

/// As above, with a displaced fingerprint of the same home and a mover of the key that is being inserted.
#[test]
fn insert_if_absent_has_one_winner_despite_a_mover() {
    explore("insert if absent, mover", Some(2), 10_000, || {
        let (model, k, j) = two_buckets();
        model.insert(j).unwrap();
        assert!(model.relocate(j, OUT));
        let other = spawn(&model, move |model| model.insert_if_absent(k).unwrap());
        let mover = spawn(&model, move |model| model.relocate(k, OUT));
        let here = model.insert_if_absent(k).unwrap();
        assert!(here != other.join().unwrap(), "exactly one winner");
        mover.join().unwrap();
        let displaced = model.displaced_count(0);
        check_at_rest(&model, &[(k, 1), (j, 1)], &[displaced, 0]);
        assert!(displaced == 1 || displaced == 2);
    });
}

/// The key was removed, and the copy that a relocation owes is still there: it is no key. So the insert that follows wins.
#[test]
fn insert_if_absent_is_not_deceived_by_a_mover() {
    for direction in [OUT, IN] {
        explore("insert if absent after remove, mover", Some(3), 200, move || {
            let (model, k, _) = two_buckets();
            model.insert(k).unwrap();
            if direction == IN {
                assert!(model.relocate(k, OUT));
            }
            let mover = spawn(&model, move |model| model.relocate(k, direction));
            assert!(model.remove(k));
            assert_eq!(model.insert_if_absent(k), Ok(true), "nobody has it");
            mover.join().unwrap();
            assert!(model.contains_both(k), "false negative");
            let displaced = u64::from(model.displaced_count(0) != 0);
            check_at_rest(&model, &[(k, 1)], &[displaced, 0]);
        });
    }
}

/// Inserts and removals of different keys in one bucket, all at once.
#[test]
fn writers_of_one_bucket() {
    explore("writers of one bucket", None, 60, || {
        let (model, k, j) = two_buckets();
        model.insert(k).unwrap();
        let other = spawn(&model, move |model| {
            model.insert(j).unwrap();
        });
        assert!(model.remove(k));
        model.insert(k).unwrap();
        other.join().unwrap();
        check_at_rest(&model, &[(k, 1), (j, 1)], &[0, 0]);
    });
}

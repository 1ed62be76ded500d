//! The concurrent rules of the Bloom family (`src/bloom` of the crate), each in the smallest scenario that needs it, on the real operations.

#![cfg(loom)]

use koel::model::{CountersModel, LayersModel};
use koel_loom_tests::explore;
use loom::{sync::Arc, thread};

/// The first hashes that have counters of their own besides those that they share.
const K: u64 = 1;
const J: u64 = 2;

/// Whatever the order, both are counted: two threads change one word.
#[test]
fn two_inserters_of_one_word() {
    explore("two inserters of one word", None, 5_000, || {
        let counters = Arc::new(CountersModel::default());
        let other = {
            let counters = Arc::clone(&counters);
            thread::spawn(move || counters.insert(J))
        };
        counters.insert(K);
        other.join().unwrap();
        assert!(counters.count(K) >= 1 && counters.count(J) >= 1, "a lost count");
        assert!(counters.remove(K) && counters.remove(J));
        assert_eq!(counters.taken(), 0);
    });
}

/// A key that is in is seen while another of the same counters comes and goes.
#[test]
fn reader_against_insert_and_remove() {
    explore("reader against insert and remove", Some(2), 5_000, || {
        let counters = Arc::new(CountersModel::default());
        counters.insert(K);
        let others: Vec<_> = [K, J]
            .into_iter()
            .map(|hash| {
                let counters = Arc::clone(&counters);
                thread::spawn(move || {
                    counters.insert(hash);
                    assert!(counters.remove(hash), "false negative");
                })
            })
            .collect();
        assert!(counters.count(K) >= 1, "false negative");
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(counters.count(K), 1);
        assert!(counters.remove(K));
        assert_eq!(counters.taken(), 0);
    });
}

/// Two threads remove a key that is in once: one of them does, and another key that is in stays.
#[test]
fn two_removers_of_one_key() {
    explore("two removers of one key", Some(3), 500, || {
        let counters = Arc::new(CountersModel::default());
        counters.insert(K);
        counters.insert(J);
        let other = {
            let counters = Arc::clone(&counters);
            thread::spawn(move || counters.remove(K))
        };
        let mine = counters.remove(K);
        assert!(mine != other.join().unwrap(), "not exactly one");
        assert_eq!(counters.count(J), 1, "false negative");
        assert!(counters.remove(J));
        assert_eq!(counters.taken(), 0);
    });
}

/// A hash of which two probes meet in one counter counts there once, as often as it is looked for.
#[test]
fn probes_that_meet() {
    explore("probes that meet", None, 1, || {
        // Two of three that meet change nothing that can be seen: the third counter is the lowest.
        let places = CountersModel::default();
        let all_meet = |hash: &u64| places.cells(*hash).windows(2).all(|two| two[0] == two[1]);
        for hash in (0..64).chain((64..100_000).find(all_meet)) {
            let counters = CountersModel::default();
            counters.insert(hash);
            assert_eq!(counters.count(hash), 1);
            assert!(counters.remove(hash));
            assert_eq!(counters.taken(), 0);
        }
    });
}

/// A key goes in, or out, while a snapshot is taken, which has it wholly or not at all: it can be removed from the copy, and another that shares a counter with it stays there.
#[test]
fn snapshot_against_insert_and_removal() {
    for goes_in in [true, false] {
        explore("snapshot against insert and removal", None, 300, move || {
            let counters = Arc::new(CountersModel::with_snapshots());
            // Copied first are the counters that K shares with J, then those that it has alone.
            let cells = |hash| counters.cells(hash);
            let is_pair = |k: u64, j: u64| {
                let (of_k, of_j) = (cells(k), cells(j));
                of_k.iter().any(|cell| *cell >= 16)
                    && of_k.iter().any(|cell| *cell < 16)
                    && of_k.iter().all(|cell| (*cell < 16) == of_j.contains(cell))
            };
            let pairs = (0..200).flat_map(|k| (0..200).map(move |j| (k, j)));
            let (k, j) = pairs.into_iter().find(|(k, j)| is_pair(*k, *j)).unwrap();
            counters.insert(j);
            if !goes_in {
                counters.insert(k);
            }
            let other = {
                let counters = Arc::clone(&counters);
                thread::spawn(move || match goes_in {
                    true => counters.insert(k),
                    false => assert!(counters.remove(k), "false negative"),
                })
            };
            let snapshot = counters.snapshot();
            if snapshot.count(k) > 0 {
                assert!(snapshot.remove(k));
            }
            assert_eq!(snapshot.count(j), 1, "J went with K");
            assert!(snapshot.remove(j));
            assert_eq!(snapshot.taken(), 0, "a part of K");
            other.join().unwrap();
        });
    }
}

/// Two threads find the layer full, and each adds one: both keys are found, whichever layer stays.
#[test]
fn two_inserters_add_a_layer() {
    explore("two inserters add a layer", Some(2), 2_000, || {
        let layers = Arc::new(LayersModel::default());
        let first = layers.fill();
        let second = (first + 1..).find(|hash| !layers.contains(*hash)).unwrap();
        let other = {
            let layers = Arc::clone(&layers);
            thread::spawn(move || {
                layers.insert(first);
                assert!(layers.contains(first), "false negative");
            })
        };
        layers.insert(second);
        assert!(layers.contains(second), "false negative");
        other.join().unwrap();
        assert!(layers.contains(first) && layers.contains(second), "a lost layer");
        assert!(layers.layers() >= 2);
    });
}

//! What takes a thread that was stopped at the worst place, which is built here by hand.

extern crate std;

use std::{sync::mpsc, thread, time::Duration};

use super::*;
use crate::{hash::mix, word::Layout};

/// A drainer that was stopped after it had placed what it has not sealed yet holds up one bucket, which may be the home of a key: its away bucket will do.
#[test]
fn insert_uses_the_away_bucket_if_a_stopped_drainer_holds_home() {
    let plan = GrowthPlan { layout: Layout::new(2), base: 2, doublings: 2 };
    let growing = Arc::new(Growing::new(plan, 0, false).unwrap());
    // With home 0: into the lower, and the upper of the two buckets that it splits into.
    let key = |top: u32| {
        let first = 1.max(top << (plan.layout.fingerprint_bits() - 1));
        (first..).map(|fingerprint| Class { home: 0, fingerprint }).next().unwrap()
    };
    let (held, other) = (key(0), key(1));
    growing.insert(held).unwrap();
    growing.double(&growing.view(), &Backoff::new()).unwrap();
    // Two drainers, both stopped, have each placed the copy: there is no room, and the bucket has to wait for them.
    let view = growing.view();
    for _ in 0..2 {
        assert!(view.new.place(view.new.home(held), Slot::at_home(held.fingerprint)));
    }
    assert_ne!(view.new.home(held), view.new.home(other));
    let (send, receive) = mpsc::channel();
    let inserter = Arc::clone(&growing);
    thread::spawn(move || send.send(inserter.insert(other)));
    assert_eq!(receive.recv_timeout(Duration::from_secs(5)), Ok(Ok(())), "it waits for a stopped thread");
    assert!(growing.contains(other) && growing.contains(held));
    assert_eq!(growing.count(other), 1);
    assert_eq!(word::displaced_count(view.new.word(view.new.home(other)).load()), 1);
}

/// Batches answer like single look-ups on every backend, at any moment of draining, whether it goes from the first chunk to the last or inserts drain here and there as well.
#[test]
fn batches_of_all_backends_answer_like_single_look_ups() {
    for slots in Layout::SLOTS {
        let plan = GrowthPlan { layout: Layout::new(slots), base: 4096, doublings: 1 };
        let growing = Growing::new(plan, 0, false).unwrap();
        let hash = |key: u64| mix(key ^ 0x5bd1_e995);
        let mut keys = 0;
        while !growing.is_draining() {
            growing.insert(growing.class(hash(keys))).unwrap();
            keys += 1;
        }
        let mut rounds = 0;
        while growing.is_draining() {
            let hashes: alloc::vec::Vec<_> = (0..keys + 3001).map(hash).collect();
            let single: alloc::vec::Vec<_> = hashes.iter().map(|hash| growing.contains(growing.class(*hash))).collect();
            assert!(single[..keys as usize].iter().all(|found| *found));
            let view = growing.view();
            let old = view.old.as_ref().unwrap();
            for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
                for part in [hashes.len(), 4096, 61] {
                    for (hashes, single) in hashes.chunks(part).zip(single.chunks(part)) {
                        let mut found = alloc::vec![false; hashes.len()];
                        growing.contains_hashes_draining(backend, &view, old, hashes, &mut found);
                        assert_eq!(found, single, "{backend:?}, {slots} slots, round {rounds}");
                    }
                }
            }
            rounds += 1;
            growing.drain(640);
            for _ in 0..rounds {
                growing.insert(growing.class(hash(keys))).unwrap();
                keys += 1;
            }
        }
        assert!(rounds > 3);
    }
}

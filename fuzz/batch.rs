//! Differential fuzzing of batches: every backend against single calls, and batched inserts and removals against single ones on a twin.
//!
//! Shared by the fuzz target `batch` and by `tests/fuzz_corpus.rs`, which replays the corpus.

use arbitrary::{Arbitrary, Unstructured};
use koel::{Backend, CuckooFilter};

/// Two filters of one seed, and batches.
#[derive(Arbitrary, Debug)]
pub(crate) struct Case {
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=300))]
    capacity: usize,
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(2..=6))]
    slots: usize,
    seed: u64,
    batches: Vec<Batch>,
}

#[derive(Arbitrary, Debug)]
enum Batch {
    Insert(Hashes),
    Remove(Hashes),
    LookUp(Hashes),
    /// Any hashes at all.
    LookUpAny(Vec<u64>),
}

/// Hashes of a small domain, so that they repeat: consecutive ones, times a step.
#[derive(Arbitrary, Debug)]
struct Hashes {
    first: u8,
    step: u8,
    count: u8,
}

impl Hashes {
    fn list(&self) -> Vec<u64> {
        (0..u64::from(self.count)).map(|index| u64::from(self.first) + index * u64::from(self.step)).collect()
    }
}

/// Runs a case, and panics where batch and single calls differ: like in a table in cache, and like in a larger one.
pub(crate) fn run(case: &Case) {
    [true, false].into_iter().for_each(|cached| run_as(case, cached));
}

fn run_as(case: &Case, cached: bool) {
    let build = || {
        let builder = CuckooFilter::<u64>::builder().capacity(case.capacity).slots_per_bucket(case.slots);
        builder.seed(case.seed).build().unwrap()
    };
    let (mut filter, twin) = (build(), build());
    filter.count_as_cached(cached);
    for batch in &case.batches {
        match batch {
            Batch::Insert(hashes) => {
                let hashes = hashes.list();
                let went_in = hashes.iter().position(|hash| twin.insert_hash(*hash).is_err()).unwrap_or(hashes.len());
                match filter.insert_hashes(&hashes) {
                    Ok(()) => assert_eq!(went_in, hashes.len()),
                    Err(error) => assert_eq!(error.inserted, went_in),
                }
            }
            Batch::Remove(hashes) => {
                let hashes = hashes.list();
                let mut removed = vec![false; hashes.len()];
                filter.remove_hashes(&hashes, &mut removed);
                assert!(hashes.iter().map(|hash| twin.remove_hash(*hash)).eq(removed));
            }
            Batch::LookUp(hashes) => look_up(&filter, &hashes.list()),
            Batch::LookUpAny(hashes) => look_up(&filter, hashes),
        }
        assert!(filter.words().eq(twin.words()), "the same table after {batch:?}");
        assert_eq!(filter.len(), twin.len());
    }
}

fn look_up(filter: &CuckooFilter<u64>, hashes: &[u64]) {
    let single: Vec<bool> = hashes.iter().map(|hash| filter.contains_hash(*hash)).collect();
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        let mut found: Vec<bool> = single.iter().map(|found| !found).collect();
        filter.contains_hashes_with(backend, hashes, &mut found);
        assert_eq!(found, single, "{backend:?}");
    }
    let mut selected = Vec::new();
    filter.select_hashes(hashes, &mut selected);
    assert!(selected.iter().all(|index| single[*index as usize]));
    assert_eq!(selected.len(), single.iter().filter(|found| **found).count());
}

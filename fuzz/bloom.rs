//! Differential fuzzing of the Bloom family: a sequence of operations runs on all of its filters and on a multiset, and none may miss a key.
//!
//! Shared by the fuzz target `bloom` and by `tests/fuzz_corpus.rs`, which replays the corpus.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Unstructured};
use koel::bloom::{BloomFilter, CountingBloomFilter, Removal, ScalableBloomFilter, ScalableCountingBloomFilter};

/// Filters, of settings that can be had, and what is done to them.
#[derive(Arbitrary, Debug)]
pub(crate) struct Case {
    capacity: u8,
    #[arbitrary(with = |u: &mut Unstructured<'_>| Ok((-0.1 - 22.0 * share(u)?).exp()))]
    rate: f64,
    blocked: bool,
    #[arbitrary(with = |u: &mut Unstructured<'_>| u.choose(&[2, 4, 8]).copied())]
    counter_bits: u32,
    #[arbitrary(with = |u: &mut Unstructured<'_>| Ok(1.0 + 15.0 * share(u)?))]
    growth: f64,
    #[arbitrary(with = |u: &mut Unstructured<'_>| Ok(0.01 + 0.98 * share(u)?))]
    tightening: f64,
    seed: u64,
    ops: Vec<Op>,
}

/// 0 to 1.
fn share(u: &mut Unstructured<'_>) -> arbitrary::Result<f64> {
    Ok(f64::from(u.arbitrary::<u8>()?) / 255.0)
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Insert(u8),
    InsertMany { first: u8, count: u8 },
    Remove(u8),
    Reload,
}

/// Runs a case, and panics where a promise is broken.
pub(crate) fn run(case: &Case) {
    let capacity = usize::from(case.capacity);
    let bloom = BloomFilter::<u64>::builder().capacity(capacity).false_positive_rate(case.rate);
    let counting = CountingBloomFilter::<u64>::builder().capacity(capacity).false_positive_rate(case.rate);
    let scalable = ScalableBloomFilter::<u64>::builder().capacity(capacity).false_positive_rate(case.rate);
    let both = ScalableCountingBloomFilter::<u64>::builder().capacity(capacity).false_positive_rate(case.rate);
    let both = both.counter_bits(case.counter_bits).growth_factor(case.growth).tightening_ratio(case.tightening);
    let scalable = scalable.growth_factor(case.growth).tightening_ratio(case.tightening);
    let mut bloom = bloom.blocked(case.blocked).seed(case.seed).build().expect("a small filter");
    let mut counting = counting.counter_bits(case.counter_bits).seed(case.seed).build().expect("a small filter");
    let mut scalable = scalable.seed(case.seed).build().expect("a small filter");
    let mut both = both.seed(case.seed).build().expect("a small filter");
    // How often each key is in: ever; in the filter that counts; in the one that counts and grows.
    let mut model = HashMap::<u64, [u64; 4]>::new();
    for op in case.ops.iter().take(100) {
        match *op {
            Op::Insert(key) => insert(u64::from(key), &bloom, &counting, &scalable, &both, &mut model),
            Op::InsertMany { first, count } => (u64::from(first)..u64::from(first) + u64::from(count % 32))
                .for_each(|key| insert(key, &bloom, &counting, &scalable, &both, &mut model)),
            Op::Remove(key) => {
                let key = u64::from(key);
                let copies = model.entry(key).or_default();
                if copies[1] > 0 {
                    assert!(counting.remove_hash(key), "false negative");
                    copies[1] -= 1;
                }
                if copies[3] > 0 {
                    let count = both.count_hash(key);
                    match both.remove_hash(key) {
                        Removal::Removed => copies[3] -= 1,
                        Removal::Ambiguous => assert_eq!(both.count_hash(key), count),
                        Removal::Absent => panic!("false negative"),
                    }
                }
            }
            Op::Reload => {
                bloom = BloomFilter::from_bytes(&bloom.to_bytes()).expect("a snapshot");
                counting = CountingBloomFilter::from_bytes(&counting.to_bytes()).expect("a snapshot");
                scalable = ScalableBloomFilter::from_bytes(&scalable.to_bytes()).expect("a snapshot");
                both = ScalableCountingBloomFilter::from_bytes(&both.to_bytes()).expect("a snapshot");
            }
        }
        for (key, copies) in &model {
            let found = [&bloom as &dyn koel::MembershipFilter, &counting, &scalable, &both];
            for (filter, copies) in found.into_iter().zip(copies) {
                assert!(*copies == 0 || filter.contains_hash(*key), "false negative");
            }
        }
    }
}

fn insert(
    key: u64,
    bloom: &BloomFilter<u64>,
    counting: &CountingBloomFilter<u64>,
    scalable: &ScalableBloomFilter<u64>,
    both: &ScalableCountingBloomFilter<u64>,
    model: &mut HashMap<u64, [u64; 4]>,
) {
    let copies = model.entry(key).or_default();
    bloom.insert_hash(key);
    counting.insert_hash(key);
    copies[0] += 1;
    copies[1] += 1;
    copies[2] += u64::from(scalable.insert_hash(key).is_ok());
    copies[3] += u64::from(both.insert_hash(key).is_ok());
}

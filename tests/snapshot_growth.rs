//! Snapshots of filters that grow.
#![cfg(feature = "growth")]

use koel::{Backend, CuckooFilter, DecodeError, FilterRef, GrowableCuckooFilter};

mod common;
#[path = "common/sealed.rs"]
mod sealed;

use common::mixed;

fn filter(max: usize, rate: f64, seed: u64) -> GrowableCuckooFilter<u64> {
    GrowableCuckooFilter::builder().max_capacity(max).false_positive_rate(rate).seed(seed).build().unwrap()
}

#[test]
fn golden_file_of_a_filter_that_has_grown() {
    let filter = filter(40_000, 0.05, 7);
    (0..30_000).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
    let bytes = filter.to_bytes();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/growing.koel");
    if std::env::var_os("KOEL_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let stored = std::fs::read(path).unwrap();
    assert!(stored == bytes, "would be written otherwise today");
    let again = GrowableCuckooFilter::<u64>::from_bytes(&stored).unwrap();
    assert_eq!(again.generation(), 1);
    assert!((0..30_000).all(|key| again.contains_hash(mixed(key))));
}

/// Found by a reviewer: an insert into such a filter never came back.
#[test]
fn fingerprints_in_buckets_of_others_are_refused() {
    let filter = filter(40_000, 0.05, 7);
    (0..30_000).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
    let bytes = filter.to_bytes();
    assert_eq!(bytes[12], 1);
    let (at, width) = (sealed::payload_at(&bytes), 60 / u32::from(bytes[11]));
    for bucket in (0..filter.buckets()).step_by(97) {
        let word = sealed::word(&bytes, at + 8 * bucket);
        for slot in (0..60 / width).filter(|slot| word >> (slot * width) & ((1 << width) - 1) != 0) {
            let mut bytes = bytes.clone();
            sealed::put(&mut bytes, at + 8 * bucket, word ^ 1 << (slot * width + width - 1));
            sealed::reseal(&mut bytes);
            let Err(DecodeError::InvalidWord { bucket: named, reason, .. }) =
                GrowableCuckooFilter::<u64>::from_bytes(&bytes)
            else {
                panic!("accepted");
            };
            // But for a slot that is sealed now.
            assert!(reason.contains("topmost bits") || reason.contains("value 1"), "{reason}");
            assert_eq!(named, bucket as u64);
        }
    }
}

#[test]
fn every_generation_comes_back_and_grows_on() {
    for rate in [0.05, 0.001, 1e-5] {
        let filter = filter(200_000, rate, 3);
        let mut keys = 0;
        let mut last = None;
        loop {
            let bytes = filter.to_bytes();
            assert!(!filter.is_draining(), "drained before it is copied");
            assert_eq!(bytes.len(), filter.serialized_size());
            let again = GrowableCuckooFilter::<u64>::from_bytes(&bytes).unwrap();
            assert_eq!(again.to_bytes(), bytes);
            assert_eq!((again.len(), again.generation()), (keys, filter.generation()));
            assert_eq!(again.max_capacity(), filter.max_capacity());
            let view = FilterRef::<u64>::new(&bytes).unwrap();
            view.verify().unwrap();
            let hashes: Vec<u64> = (0..keys as u64 + 1_000).map(mixed).collect();
            let mut found = vec![false; hashes.len()];
            filter.contains_hashes(&hashes, &mut found);
            for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
                let mut seen: Vec<bool> = found.iter().map(|found| !found).collect();
                view.contains_hashes_with(backend, &hashes, &mut seen);
                assert!(seen == found, "{backend:?}, {filter:?}");
            }
            for (hash, found) in hashes.iter().zip(found).step_by(17) {
                assert_eq!(view.contains_hash(*hash), found);
                assert_eq!(sealed::contains(&bytes, *hash), found);
            }
            if keys == 200_000 {
                break;
            }
            // The one that came back goes on as the other does.
            let more = (keys + 20_000).min(200_000);
            for key in keys..more {
                filter.insert_hash(mixed(key as u64)).unwrap();
                again.insert_hash(mixed(key as u64)).unwrap();
            }
            keys = more;
            last = Some(again);
        }
        assert!(filter.generation() >= 2);
        let again = last.unwrap();
        assert!((0..keys).all(|key| again.remove_hash(mixed(key as u64))));
        assert!(again.is_empty());
    }
}

#[test]
fn a_filter_that_is_draining_is_drained_first() {
    let filter = filter(1_000_000, 0.001, 3);
    let mut keys = 0;
    while !(filter.generation() == 3 && filter.is_draining()) {
        filter.insert_hash(mixed(keys)).unwrap();
        keys += 1;
    }
    let view = filter.to_bytes();
    assert!(!filter.is_draining());
    let view = FilterRef::<u64>::new(&view).unwrap();
    view.verify().unwrap();
    assert_eq!(view.len() as u64, keys);
    assert!((0..keys).all(|key| view.contains_hash(mixed(key)) && filter.contains_hash(mixed(key))));
}

#[test]
fn the_types_are_not_mixed_up() {
    let growing = filter(10_000, 0.01, 1).to_bytes();
    let fixed = CuckooFilter::<u64>::with_capacity(10).to_bytes();
    let error = CuckooFilter::<u64>::from_bytes(&growing).map(|_| ()).unwrap_err();
    assert_eq!(error, DecodeError::OtherKind { stored: 2, expected: 1 });
    let error = GrowableCuckooFilter::<u64>::from_bytes(&fixed).map(|_| ()).unwrap_err();
    assert_eq!(error, DecodeError::OtherKind { stored: 1, expected: 2 });
    let view = FilterRef::<u64>::new(&growing).unwrap();
    assert!(view.to_owned().is_err() && view.to_growable().is_ok());
    let view = FilterRef::<u64>::new(&fixed).unwrap();
    assert!(view.to_owned().is_ok() && view.to_growable().is_err());
}

#[test]
fn flips_are_refused() {
    let filter = filter(40_000, 0.05, 7);
    (0..30_000).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
    let mut bytes = filter.to_bytes();
    let mut random = common::Random::new(2);
    let header = 0..8 * 200;
    let anywhere: Vec<usize> = (0..2_000).map(|_| random.below(8 * bytes.len() as u64) as usize).collect();
    for bit in header.chain(anywhere) {
        bytes[bit / 8] ^= 1 << (bit % 8);
        GrowableCuckooFilter::<u64>::from_bytes(&bytes).map(|_| ()).expect_err("accepted");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

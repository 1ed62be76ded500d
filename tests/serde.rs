//! Filters through serde: the bytes of their snapshots, in formats with bytes and without.
#![cfg(feature = "serde")]

use koel::CuckooFilter;
use serde::de::{Deserialize, IntoDeserializer, value::Error};

#[test]
fn filters_go_through_formats() {
    let filter = CuckooFilter::<str>::builder().capacity(100).seed(1).build().unwrap();
    filter.insert("oak").unwrap();
    let json = serde_json::to_string(&filter).unwrap();
    assert_eq!(json, serde_json::to_string(&filter.to_bytes()).unwrap(), "a list of numbers, where there are no bytes");
    let again: CuckooFilter<str> = serde_json::from_str(&json).unwrap();
    assert!(again.contains("oak") && again.words().eq(filter.words()));

    let bytes = filter.to_bytes();
    let again = CuckooFilter::<str>::deserialize(IntoDeserializer::<Error>::into_deserializer(&bytes[..])).unwrap();
    assert!(again.words().eq(filter.words()));
    let error = serde_json::from_str::<CuckooFilter<str>>("[1, 2, 3]").unwrap_err();
    assert!(error.to_string().contains("3 bytes, where a snapshot has 96"), "{error}");
}

#[cfg(feature = "growth")]
#[test]
fn growing_filters_do_too() {
    let filter = koel::GrowableCuckooFilter::<u64>::builder().max_capacity(10_000).seed(1).build().unwrap();
    (0..1_000).for_each(|key| filter.insert(&key).unwrap());
    let again: koel::GrowableCuckooFilter<u64> =
        serde_json::from_str(&serde_json::to_string(&filter).unwrap()).unwrap();
    assert!((0..1_000).all(|key| again.contains(&key)));
}

//! Operations on the Bloom family, see `fuzz/bloom.rs`.

#![no_main]

#[path = "../bloom.rs"]
mod bloom;

libfuzzer_sys::fuzz_target!(|case: bloom::Case| bloom::run(&case));

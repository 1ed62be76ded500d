//! Batches of random hashes on every backend and by single calls, see `fuzz/batch.rs`.

#![no_main]

#[path = "../batch.rs"]
mod batch;

libfuzzer_sys::fuzz_target!(|case: batch::Case| batch::run(&case));

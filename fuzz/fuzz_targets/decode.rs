//! Bytes that may be snapshots, and what is made of them, see `fuzz/decode.rs`.

#![no_main]

#[path = "../decode.rs"]
mod decode;

libfuzzer_sys::fuzz_target!(|case: decode::Case| decode::run(&case));

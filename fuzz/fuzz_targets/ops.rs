//! Random operations on a filter and on a model of it, see `fuzz/ops.rs`.

#![no_main]

#[path = "../ops.rs"]
mod ops;

libfuzzer_sys::fuzz_target!(|case: ops::Case| ops::run(&case));

//! The command line.

use std::{ops::RangeInclusive, path::PathBuf, thread};

use clap::{Parser, error::ErrorKind, value_parser};

use crate::Result;

/// Serves the same requests from an embedded store without and with a cuckoo filter in front of it, and compares.
#[derive(Parser)]
#[command(name = "cache_guard", allow_negative_numbers = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// File of the keys to load: UTF-8, one key per line; empty and repeated lines are skipped [default: a million generated ids]
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,

    /// Number of requests that each round serves, over all threads
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) requests: u64,

    /// Share of the requests that ask for absent keys, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = |text: &str| number(text, 0.0..=1.0))]
    pub(crate) absent: f64,

    /// Exponent of the Zipf distribution over present keys, 0 (all are equally popular) to 100
    #[arg(long, value_name = "EXPONENT", default_value_t = 1.0, value_parser = |text: &str| number(text, 0.0..=100.0))]
    pub(crate) zipf: f64,

    /// Number of threads that serve requests, 1 to 1024; one more inserts and deletes keys [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,

    /// Share of absent keys that the filter may let through, above 0 and below 1 (its false-positive rate)
    #[arg(long, value_name = "SHARE", default_value_t = 0.001)]
    pub(crate) rate: f64,

    /// Seed of keys, requests and filter, any 64-bit number: with as many threads, the same seed makes the same requests
    #[arg(long, value_name = "NUMBER", default_value_t = 42)]
    pub(crate) seed: u64,

    /// File for a trace, overwritten: one CSV line for every 64th request of both rounds [default: no trace]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Trace columns: generation (of the filter: 0, as it never grows), seed (of the filter), answer (of the filter: absent, maybe, or - in
the round without it), source (of the reply: filter, store-hit or store-miss), nanoseconds (that the request took).
Exit codes: 0 if all went well, 1 if the filter denied a key that was in the store, 2 for any other error.";

impl Args {
    /// The arguments of this process. Prints the help and leaves if asked to.
    pub(crate) fn read() -> Result<Self> {
        Self::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp => error.exit(),
            // The first line says what is wrong; usage and tips follow.
            _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").into(),
        })
    }

    /// Threads that serve requests.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |cores| cores.get() as u64))
    }
}

/// A number within bounds, which NaN is not.
fn number(text: &str, bounds: RangeInclusive<f64>) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if bounds.contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not in {} to {}", bounds.start(), bounds.end()))
    }
}

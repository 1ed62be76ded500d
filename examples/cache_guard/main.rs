//! The job a filter exists for: it keeps requests for absent keys away from a store.
//!
//! ```text
//! cargo run --release --example cache_guard            # a million generated keys
//! cargo run --release --example cache_guard -- --help
//! ```
//!
//! Loads keys into an embedded store ([redb](https://docs.rs/redb), in a temporary directory) and into a
//! [`CuckooFilter`], then serves the same requests twice, most of them for absent keys, the others for present ones whose
//! popularity follows Zipf's law:
//!
//! 1. **without the filter**: every request reads from the store, most of them only to find nothing;
//! 2. **with the filter**: a request for a key that the filter calls absent is answered at once, the others go on to the
//!    store.
//!
//! In both rounds one more thread inserts and deletes keys of its own, so that the filter is seen at work while it
//! changes. The order in which store and filter are changed matters: `guard.rs` has it, and the reasons.
//!
//! The table at the end compares the rounds, sets the false positives against those expected, and counts **false
//! negatives**, keys that are in the store and denied by the filter. There must be none: the exit code is 1 if there are,
//! and 2 if something else went wrong. They are looked for
//!
//! - in every request for a present key;
//! - in a sample of the requests for absent keys: the store is asked as well;
//! - in keys of the changing thread, by all threads, from the end of their insert to the beginning of their deletion;
//! - in all loaded keys, at the end.
//!
//! Only replying is timed, not the making of requests, the checks, or the trace.

mod args;
mod guard;
mod keys;
mod report;
mod round;
mod store;
mod tally;
mod trace;

use std::{error::Error, io::Write, process::ExitCode};

use indicatif::{ProgressBar, ProgressStyle};
use koel::CuckooFilter;

use crate::{args::Args, guard::Guard, keys::Keys, round::Round, store::Store, trace::Trace};

/// What goes wrong here is only ever shown, so any error will do.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match Args::read().and_then(|args| run(&args)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Loads, serves both rounds, prints the table; returns the number of false negatives.
fn run(args: &Args) -> Result<u64> {
    let keys = match &args.keys {
        Some(file) => Keys::from_file(file)?,
        None => Keys::generated(args.seed),
    };
    let filter = CuckooFilter::<str>::builder()
        .capacity(keys.list.len() + round::LIVE)
        .false_positive_rate(args.rate)
        .seed(args.seed)
        .build()?;
    let trace = args.trace.as_deref().map(|file| Trace::create(file, args.seed)).transpose()?;
    let directory = tempfile::tempdir()?;
    let store = Store::create(&directory.path().join("store.redb"))?;

    load(&keys, &store, &filter)?;
    let keys = keys.shuffled(args.seed);
    let serve = |name, filter| {
        let bar = progress(name, args.requests);
        Round::new(args, &keys, Guard { store: &store, filter }, trace.as_ref(), &bar).run()
    };
    let without = serve("without filter", None)?;
    let mut with = serve("with filter", Some(&filter))?;
    for key in &keys.list {
        with.check(filter.contains(key.as_str()));
    }
    if let Some(trace) = trace {
        trace.finish()?;
    }

    std::io::stdout().write_all(report::table(args, &keys, &filter, &without, &with).as_bytes())?;
    Ok(with.false_negatives)
}

/// Puts all keys into store and filter.
fn load(keys: &Keys, store: &Store, filter: &CuckooFilter<str>) -> Result<()> {
    // One transaction per key would spend its time in commits, a single one would hold every changed page in memory.
    const BATCH: usize = 50_000;
    let bar = progress("loading", keys.list.len() as u64);
    for batch in keys.list.chunks(BATCH) {
        store.insert_all(batch)?;
        for key in batch {
            filter.insert(key.as_str())?;
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish();
    Ok(())
}

/// A bar on standard error, which is invisible where that is no terminal.
fn progress(name: &'static str, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:14} {wide_bar} {human_pos}/{human_len}, {elapsed}");
    ProgressBar::new(length).with_style(style.expect("a valid template")).with_message(name)
}

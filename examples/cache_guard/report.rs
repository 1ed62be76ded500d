//! The table at the end.

use std::fmt::Write;

use indicatif::{BinaryBytes, HumanCount};
use koel::CuckooFilter;

use crate::{args::Args, keys::Keys, tally::Tally};

/// Both rounds side by side, and what the filter cost.
pub(crate) fn table(args: &Args, keys: &Keys, filter: &CuckooFilter<str>, without: &Tally, with: &Tally) -> String {
    let mut text = String::new();
    let mut row = |name: &str, left: String, right: String| {
        let _ = writeln!(text, "{name:<24}{left:>18}{right:>18}");
    };
    let mut both = |name: &str, cell: &dyn Fn(&Tally) -> String| row(name, cell(without), cell(with));

    both("requests", &|tally| HumanCount(tally.requests).to_string());
    both("requests/s", &|tally| HumanCount((tally.requests as f64 / tally.elapsed.as_secs_f64()) as u64).to_string());
    both("store reads", &|tally| HumanCount(tally.store_reads).to_string());
    for percent in [50.0, 95.0, 99.0, 99.9] {
        both(&format!("p{percent}"), &|tally| {
            format!("{:.2} µs", tally.latency.value_at_percentile(percent) as f64 / 1e3)
        });
    }
    both("keys changed meanwhile", &|tally| HumanCount(tally.changed).to_string());

    let bits = filter.memory_bytes() as f64 * 8.0 / filter.capacity() as f64;
    let share = |count: f64| if with.absent == 0 { 0.0 } else { 100.0 * count / with.absent as f64 };
    format!(
        "keys {}, threads {}, share of absent keys {}, Zipf exponent {}, seed {}\n\n\
         {:24}{:>18}{:>18}\n{text}\n\
         false positives         {} of {} absent ({:.4}%), expected {:.0} ({:.4}%)\n\
         filter memory per key   {bits:.2} bits ({} slots of {} bits in a bucket, {} in all)\n\
         false negatives         {} of {} look-ups of keys that are in\n",
        HumanCount(keys.list.len() as u64),
        args.threads(),
        args.absent,
        args.zipf,
        args.seed,
        "",
        "without filter",
        "with filter",
        HumanCount(with.false_positives),
        HumanCount(with.absent),
        share(with.false_positives as f64),
        with.expected_false_positives,
        share(with.expected_false_positives),
        filter.slots_per_bucket(),
        filter.fingerprint_bits() + 1,
        BinaryBytes(filter.memory_bytes() as u64),
        HumanCount(with.false_negatives),
        HumanCount(with.checks),
    )
}

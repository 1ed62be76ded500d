//! Does one operation a given number of times, for counting its instructions: `instructions OPERATION COUNT`. See ci/asm.sh.
//!
//! Everything else (building, filling, making keys) does not depend on the count, so that the difference of two runs is the operation alone.

use std::{hint::black_box, process::ExitCode};

use koel::CuckooFilter;
use koel_bench::{
    keys,
    peers::{Plan, koel::table},
};

/// The most that can be done.
const MOST: usize = 1 << 16;
/// Two tables that count as cached, one that does not.
const SMALL: u64 = 256 << 10;
const MEDIUM: u64 = 2 << 20;
const LARGE: u64 = 8 << 20;

fn filter(bytes: u64, keys: u64) -> CuckooFilter<u64> {
    let filter = table(&Plan { bytes, keys, huge_pages: false }, 4).expect("a table");
    let all: Vec<u64> = (0..keys).map(keys::present).collect();
    filter.insert_hashes(&all).expect("room");
    filter
}

/// The table in cache at 75% load.
fn cached() -> CuckooFilter<u64> {
    filter(SMALL, SMALL / 2 * 3 / 4)
}

fn contains(filter: &CuckooFilter<u64>, hashes: &[u64]) {
    hashes.iter().for_each(|hash| {
        black_box(filter.contains_hash(*hash));
    });
}

fn contains_batch(filter: &CuckooFilter<u64>, hashes: &[u64]) {
    let mut found = vec![false; MOST];
    filter.contains_hashes(hashes, &mut found[..hashes.len()]);
    black_box(&mut found);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, count] = &arguments[..] else { return usage() };
    let Some(count) = count.parse().ok().filter(|count| *count <= MOST) else { return usage() };
    let absent: Vec<u64> = (0..MOST as u64).map(keys::absent).collect();
    let present: Vec<u64> = (0..MOST as u64).map(keys::present).collect();
    match &operation[..] {
        "contains_hash-absent" => contains(&cached(), &absent[..count]),
        "contains_hash-present" => contains(&cached(), &present[..count]),
        "contains_hashes-in-cache" => contains_batch(&cached(), &absent[..count]),
        // A sixteenth of the slots: hardly a key is displaced, so these are the stages without the rare last one.
        "contains_hashes-in-memory" => contains_batch(&filter(LARGE, LARGE / 32), &absent[..count]),
        "insert_hash" => {
            let filter = filter(MEDIUM, 0);
            present[..count].iter().for_each(|hash| filter.insert_hash(*hash).expect("room"));
            black_box(filter.len());
        }
        "insert_hashes" => {
            let filter = filter(MEDIUM, 0);
            filter.insert_hashes(&present[..count]).expect("room");
            black_box(filter.len());
        }
        "remove_hash" => {
            let filter = filter(MEDIUM, MOST as u64);
            present[..count].iter().for_each(|hash| assert!(filter.remove_hash(*hash)));
            black_box(filter.len());
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: instructions OPERATION COUNT, with an operation of ci/instructions.txt and a count up to {MOST}");
    ExitCode::from(2)
}

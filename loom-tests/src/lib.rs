//! The frame of the loom tests: runs a scenario in every interleaving within bounds and holds the number of executions to a floor.
//!
//! A scenario that explores a handful of executions proves nothing, and loom explores few without saying so when a thread reads an
//! atomic before it writes it (`AtomicWord::peek` in `src/sync.rs` of the crate says more). So every test states how many executions it
//! expects at least. `KOEL_LOOM_IGNORE_FLOORS` switches that off, for runs with a mutation.

#![cfg(loom)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Runs `scenario` in every interleaving (with at most `preemptions` preemptions, where that is given) and expects at least `floor` executions.
pub fn explore(name: &str, preemptions: Option<usize>, floor: usize, scenario: impl Fn() + Sync + Send + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    let executions = executions.load(Ordering::Relaxed);
    println!("{name}: {executions} executions");
    // Under a mutation the rules themselves have to fail, not the floor.
    let mutated = std::env::var_os("KOEL_LOOM_IGNORE_FLOORS").is_some();
    assert!(mutated || executions >= floor, "{name}: only {executions} executions explored, expected {floor} or more");
}

//! Growth to ten million keys and back: nothing is lost, and the system gets back every table that was left. Alone in its process, whose memory it looks at.

#![cfg(all(feature = "growth", target_os = "linux"))]

mod common;

use common::{mixed, status};
use koel::GrowableCuckooFilter;

const KEYS: u64 = 10_000_000;

#[test]
fn ten_million_keys_come_and_go() {
    // What the process needs besides.
    let start = status("VmRSS:");
    let slack = 8 << 20;

    let mut filter = GrowableCuckooFilter::<u64>::builder()
        .initial_capacity(1_000)
        .max_capacity(KEYS as usize)
        .false_positive_rate(0.01)
        .build()
        .unwrap();
    let mut peak = 0;
    for key in 0..KEYS {
        filter.insert_hash(mixed(key)).unwrap();
        if key % 1024 == 0 {
            peak = peak.max(filter.memory_bytes());
        }
    }
    assert_eq!(filter.len(), KEYS as usize);
    filter.finish_draining();
    // Never more than two tables, neither by its own account nor by the system's.
    let full = filter.memory_bytes();
    assert!(peak <= full * 8 / 5, "{peak} bytes at the peak, {full} at the end");
    let highest = status("VmHWM:") - start;
    assert!(highest <= peak + slack, "{highest} bytes by the system's account, {peak} by the filter's");

    // What was left is freed when nobody can be looking at it any more, which operations find out as they go.
    assert!((0..100_000).all(|key| filter.contains_hash(mixed(key))));
    let resident = status("VmRSS:") - start;
    assert!(resident <= full + slack, "{resident} bytes resident, {full} in use");

    assert!((0..KEYS).all(|key| filter.remove_hash(mixed(key))), "a key that is in was not removed");
    assert_eq!(filter.len(), 0);
    assert!((0..100_000).all(|key| !filter.contains_hash(mixed(key))));

    filter.shrink_to_fit();
    assert_eq!(filter.generation(), 0);
    let resident = status("VmRSS:").saturating_sub(start);
    assert!(resident <= slack, "{resident} bytes resident after everything was removed");
}

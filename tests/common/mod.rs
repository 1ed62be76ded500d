//! What several tests need.

#![allow(dead_code, reason = "each test uses a part")]

/// SplitMix64 (Steele, Lea and Flood, 2014): a small reproducible generator.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A random-looking hash for each number: SplitMix64's finaliser.
pub(crate) fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Holds a count of hits among `tries` to within `sigmas` of what `rate` predicts.
#[track_caller]
pub(crate) fn assert_rate(what: &str, hits: u64, tries: u64, rate: f64, sigmas: f64) {
    let expected = tries as f64 * rate;
    // One hit of slack where next to none are expected.
    let margin = sigmas * (expected * (1.0 - rate)).sqrt() + 1.0;
    let off = (hits as f64 - expected).abs();
    assert!(off <= margin, "{what}: {hits} of {tries}, expected {expected:.1} within {margin:.1}");
}

/// A line of `/proc/self/status`, of what the process takes, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    let kilobytes: usize = line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap();
    kilobytes << 10
}

//! The filters under test, behind one small trait.
//!
//! To add one: implement [`Peer`] (and [`Shared`] if threads can change it through `&self`) in the file of its family, and add a [`Spec`] to
//! that file's list. Nothing else has to change: experiments take what a [`Spec`] says it can do.

mod bloom;
mod cuckoo;
mod fuse;
pub mod koel;
mod quotient;
mod set;

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::options::Settings;

/// A filter of one thread. The loops of the default methods are compiled for each filter, so a single call is inlined as it would be for a user.
pub trait Peer: Send + Sync {
    /// Whether the key may be in.
    fn contains(&self, hash: u64) -> bool;

    /// Puts a key in, or refuses.
    fn insert(&mut self, hash: u64) -> bool;

    /// Takes a key out; `false` if the filter cannot, or did not find it.
    fn remove(&mut self, _hash: u64) -> bool {
        false
    }

    /// Looks up many keys.
    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        for (hash, found) in hashes.iter().zip(found) {
            *found = self.contains(*hash);
        }
    }

    /// Puts keys in up to the first that is refused; how many went in.
    fn insert_many(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().position(|hash| !self.insert(*hash)).unwrap_or(hashes.len())
    }

    /// Takes keys out; how many were found.
    fn remove_many(&mut self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|hash| self.remove(**hash)).count()
    }

    /// Takes all keys out and has every page of the table written, so that no page fault is measured. Filters that cannot, or whose
    /// pages are written by building them, do nothing.
    fn clear(&mut self) {}

    /// All memory, as exactly as the filter tells.
    fn memory_bytes(&self) -> usize;

    /// The false-positive rate that the filter states for what is in it.
    fn stated_rate(&self) -> Option<f64> {
        None
    }

    /// The filter as threads share it, if they can change it at once.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }

    /// The Koel filter, for what only it tells.
    fn as_koel(&self) -> Option<&::koel::CuckooFilter<u64>> {
        None
    }
}

/// A filter that threads change through `&self`.
pub trait Shared: Sync {
    /// Puts a key in, or refuses.
    fn insert(&self, hash: u64) -> bool;

    /// Takes a key out; `false` if the filter cannot, or did not find it.
    fn remove(&self, _hash: u64) -> bool {
        false
    }

    /// Puts keys in up to the first that is refused; how many went in.
    fn insert_many(&self, hashes: &[u64]) -> usize {
        hashes.iter().position(|hash| !self.insert(*hash)).unwrap_or(hashes.len())
    }

    /// Takes keys out; how many were found.
    fn remove_many(&self, hashes: &[u64]) -> usize {
        hashes.iter().filter(|hash| self.remove(**hash)).count()
    }
}

/// What a filter is built for.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes of the table: its slots have 16 bits, all told, so there are half as many.
    pub bytes: u64,
    /// Keys that will go in. Filters without slots are sized for them.
    pub keys: u64,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
}

impl Plan {
    /// Slots of a table of this size.
    pub const fn slots(&self) -> u64 {
        self.bytes / 2
    }

    /// The false-positive rate of Koel's 4 x 15 layout with these keys: what filters of free choice are sized for.
    pub fn rate(&self) -> f64 {
        let classes = self.bytes as f64 / 8.0 * 16383.0;
        1.0 - (-(self.keys as f64) / classes).exp()
    }
}

/// A filter that can be measured.
#[derive(Clone, Copy)]
pub struct Spec {
    /// As options and records name it.
    pub name: &'static str,
    /// What it is, and what it was given instead of a key.
    pub note: &'static str,
    /// Whether it is one of ours: not a peer to be compared with.
    pub ours: bool,
    /// Whether keys can be taken out.
    pub removes: bool,
    /// Whether threads can change it at once.
    pub shared: bool,
    /// Whether it has no slots, and is built for the very number of keys that go in.
    pub sized_for_keys: bool,
    /// Whether it is built from all keys at once and never changes.
    pub fixed: bool,
    /// Whether its calls are batched.
    pub batched: bool,
    /// Whether the plain run measures it on large tables too, where filling others takes too long.
    pub large: bool,
    /// Builds it, empty (but a fixed one with the first `plan.keys` keys).
    pub build: fn(&Plan) -> Result<Box<dyn Peer>, String>,
}

impl Spec {
    /// A single-threaded filter with slots that cannot remove; families change what is different.
    const fn new(name: &'static str, note: &'static str, build: fn(&Plan) -> Result<Box<dyn Peer>, String>) -> Self {
        Self {
            name,
            note,
            ours: false,
            removes: false,
            shared: false,
            sized_for_keys: false,
            fixed: false,
            batched: false,
            large: false,
            build,
        }
    }

    /// Whether this run measures the filter on a table of so many bytes.
    pub fn affordable(&self, settings: &Settings, bytes: u64) -> bool {
        self.large || settings.peers_chosen || bytes <= settings.large_bytes
    }
}

/// All filters, ours first.
pub fn all() -> Vec<Spec> {
    [koel::SPECS, cuckoo::SPECS, quotient::SPECS, bloom::SPECS, fuse::SPECS, set::SPECS].concat()
}

/// Those that the options name.
pub fn chosen(settings: &Settings) -> Vec<Spec> {
    all().into_iter().filter(|spec| settings.peers.contains(&spec.name)).collect()
}

/// A key that is its own hash, for filters that insist on hashing: [`PassThrough`] gives it back as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hashed(pub(crate) u64);

impl Hash for Hashed {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The one width that no filter here uses for anything of its own.
        state.write_i64(self.0.cast_signed());
    }
}

/// A hasher that gives a [`Hashed`] back unchanged, and mixes anything else by one multiplication: cuckoo filters hash their fingerprints,
/// too, to find the other bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassThrough(u64);

/// Builds [`PassThrough`].
pub(crate) type BuildPassThrough = BuildHasherDefault<PassThrough>;

impl Hasher for PassThrough {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_i64(&mut self, hash: i64) {
        self.0 = hash.cast_unsigned();
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn hashes_pass_through() {
        use std::hash::BuildHasher;
        assert_eq!(BuildPassThrough::default().hash_one(Hashed(0x1234_5678_9abc_def0)), 0x1234_5678_9abc_def0);
    }

    /// Every filter finds what is in, at the load and the memory that it is measured with, and takes it out again.
    #[test]
    fn filters_work() {
        let plan = Plan { bytes: 1 << 16, keys: (1 << 15) * 3 / 4, huge_pages: false };
        for spec in all() {
            let mut filter = (spec.build)(&plan).unwrap();
            if !spec.fixed {
                let keys = keys::in_chunks(0, plan.keys, |hashes| filter.insert_many(hashes));
                assert_eq!(keys, plan.keys, "{}", spec.name);
            }
            let look_ups = keys::LookUps::random(plan.keys, 20_000, 50, 1);
            let mut found = vec![false; look_ups.hashes.len()];
            filter.contains_many(&look_ups.hashes, &mut found);
            let answers = look_ups.check(&found);
            assert_eq!(answers.missed, 0, "{}", spec.name);
            assert!(answers.false_positives < answers.absent / 20, "{}: {answers:?}", spec.name);
            let per_key = filter.memory_bytes() as f64 / plan.keys as f64;
            assert!((1.0..45.0).contains(&per_key), "{}: {per_key} bytes per key", spec.name);
            assert_eq!(filter.shared().is_some(), spec.shared, "{}", spec.name);
            let hashes: Vec<u64> = (0..1000).map(keys::present).collect();
            let removed = filter.remove_many(&hashes);
            assert_eq!(removed, if spec.removes { 1000 } else { 0 }, "{}", spec.name);
        }
    }

    /// A table of so many bytes has exactly that many.
    #[test]
    fn koel_has_the_size_asked_for() {
        for bytes in [1 << 16, 1 << 20, 3 << 20, 64 << 20_u64] {
            let filter = koel::table(&Plan { bytes, keys: 0, huge_pages: true }, 4).unwrap();
            assert_eq!(filter.buckets() as u64 * 8, bytes);
        }
    }
}

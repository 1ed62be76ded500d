//! A window for `loom-tests`: the real operations on tables of a few buckets, with classes chosen by their buckets.

pub use crate::bloom::model::{CountersModel, LayersModel};
#[cfg(feature = "growth")]
pub use crate::growth::model::{GrowthKey, GrowthModel};
use alloc::vec::Vec;

use crate::{
    batch,
    cells::Cells,
    error::InsertError,
    hash::{Class, Geometry, Only},
    kick::{
        Alone,
        relocate::{Hop, Relocation, relocate},
    },
    raw::RawFilter,
    word::{self, Layout, Slot},
    words::{Frozen, Snapshot},
};

/// A filter of a few buckets.
#[derive(Debug)]
pub struct Model(RawFilter);

/// A class of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(Class);

/// The words of a snapshot.
#[derive(Debug)]
pub struct SnapshotModel {
    bytes: Vec<[u8; 8]>,
    layout: Layout,
    geometry: Geometry,
}

impl SnapshotModel {
    fn cells(&self) -> Cells<'_, Snapshot<Only>> {
        Cells { words: Frozen(&self.bytes), layout: &self.layout, geometry: &self.geometry, generation: Snapshot(Only) }
    }

    /// The look-up that reads the home bucket first, and believes its count.
    pub fn contains_home_first(&self, key: Key) -> bool {
        self.cells().contains_home_first(key.0)
    }

    /// Copies of the class.
    pub fn count(&self, key: Key) -> usize {
        let cells = self.cells();
        let candidates = cells.candidates(key.0);
        cells.copies(&candidates, cells.seen(&candidates))
    }

    /// The displaced count of a bucket.
    pub fn displaced_count(&self, bucket: usize) -> u64 {
        word::displaced_count(self.cells().load(bucket))
    }
}

impl Model {
    /// With `buckets` buckets of `slots` slots.
    pub fn new(slots: usize, buckets: usize) -> Self {
        let layout = Layout::new(slots);
        Self(RawFilter::new(layout, Geometry::new(buckets, layout, 0), false).expect("a small table"))
    }

    /// The same, of which snapshots are taken.
    pub fn with_snapshots(slots: usize, buckets: usize) -> Self {
        let mut model = Self::new(slots, buckets);
        model.0.gate.put_to_use();
        model
    }

    /// A snapshot's words.
    pub fn snapshot(&self) -> SnapshotModel {
        let mut bytes = alloc::vec![[0; 8]; self.0.cells().geometry.buckets()];
        self.0.copy_words(&mut bytes);
        SnapshotModel { bytes, layout: *self.0.cells().layout, geometry: *self.0.cells().geometry }
    }

    /// The `nth` class with these buckets.
    pub fn key(&self, home: usize, away: usize, nth: usize) -> Key {
        let geometry = &self.0.cells().geometry;
        let mut fingerprints = (1..).filter(|fingerprint| geometry.other(home, *fingerprint) == away);
        Key(Class { home, fingerprint: fingerprints.nth(nth).expect("unbounded") })
    }

    /// The branch-free look-up.
    pub fn contains_both(&self, key: Key) -> bool {
        self.0.cells().contains_both(key.0)
    }

    /// The look-up that reads the home bucket first.
    pub fn contains_home_first(&self, key: Key) -> bool {
        self.0.cells().contains_home_first(key.0)
    }

    /// The batched look-up, of a table in cache or in memory. Only for six slots in a bucket, where hashes of a class are easily found.
    pub fn contains_batch(&self, key: Key, cached: bool) -> bool {
        assert_eq!(self.0.cells().layout.slots(), 6);
        let hash = (0..).find(|hash| self.0.cells().geometry.class(*hash) == key.0).expect("unbounded");
        let mut found = [false];
        batch::contains(&self.0.cells(), cached, &[hash], &mut found);
        found[0]
    }

    /// Copies of the class.
    pub fn count(&self, key: Key) -> usize {
        self.0.count(key.0)
    }

    /// See [`CuckooFilter::insert`](crate::CuckooFilter::insert).
    pub fn insert(&self, key: Key) -> Result<(), InsertError> {
        self.0.insert(key.0)
    }

    /// See [`CuckooFilter::insert_if_absent`](crate::CuckooFilter::insert_if_absent).
    pub fn insert_if_absent(&self, key: Key) -> Result<bool, InsertError> {
        self.0.insert_if_absent(key.0)
    }

    /// See [`CuckooFilter::remove`](crate::CuckooFilter::remove).
    pub fn remove(&self, key: Key) -> bool {
        self.0.remove(key.0)
    }

    /// One hop of a kick: moves a copy of the class out of its home bucket, or back into it. Whether it did.
    pub fn relocate(&self, key: Key, outward: bool) -> bool {
        let Class { home, fingerprint } = key.0;
        let away = self.0.cells().geometry.other(home, fingerprint);
        let hop = if outward {
            Hop { from: home, to: away, slot: Slot::at_home(fingerprint) }
        } else {
            Hop { from: away, to: home, slot: Slot::away(fingerprint) }
        };
        let _inside = self.0.gate.enter();
        let around = Alone { cells: self.0.cells(), counters: &self.0.common.counters };
        relocate(&self.0.cells(), &around, hop) == Relocation::Moved
    }

    /// The displaced count of a bucket.
    pub fn displaced_count(&self, bucket: usize) -> u64 {
        word::displaced_count(self.0.cells().word(bucket).load())
    }

    /// Taken slots of all buckets.
    pub fn taken(&self) -> usize {
        self.0.cells().words().map(|word| self.0.cells().layout.taken_count(word)).sum()
    }

    /// Keys by the counters.
    pub fn len(&self) -> usize {
        self.0.keys()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

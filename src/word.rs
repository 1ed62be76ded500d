//! A bucket as a number: slots packed into a `u64`. Pure functions, no atomics, no allocation.
//!
//! ```text
//! 63..60            59 ........................................ 0
//! displaced count   L slots of 60/L bits each, L in {2,3,4,5,6}
//! ```
//!
//! A slot is `fingerprint << 1 | displaced`; the fingerprint is never 0, so an all-zero slot is empty and the slot
//! value 1 never occurs. The displaced count of a bucket says how many fingerprints whose home it is sit in their
//! away bucket; at [`SATURATED`] it stays for ever, since by then its true value is unknown.
//!
//! All layouts run through the same code with run-time masks. Slots are compared all at once inside the word (SWAR):
//! subtracting 1 from every lane borrows out of exactly those lanes that were 0. A borrow can spill into the lane
//! above, so only the *lowest* mark of [`Layout::zeros`] is exact; where marks are counted, [`Layout::zeros_exact`]
//! costs one operation more and never spills.

/// Bits of a word that hold slots.
const SLOT_BITS: u32 = 60;
/// One in the place of the displaced count.
const COUNT_ONE: u64 = 1 << SLOT_BITS;
/// A displaced count that has stopped counting.
pub(crate) const SATURATED: u64 = 15;

/// How a word is divided into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// 1 in every slot.
    ones: u64,
    /// The highest bit of every slot.
    highs: u64,
    /// Bits of a slot.
    width: u32,
}

impl Layout {
    /// The numbers of slots that a word can be divided into.
    pub(crate) const SLOTS: core::ops::RangeInclusive<usize> = 2..=6;

    /// The layout with `slots` slots, one of [`SLOTS`](Self::SLOTS).
    pub(crate) const fn new(slots: usize) -> Self {
        assert!(slots >= 2 && slots <= 6);
        Self::with_width(slots as u32, SLOT_BITS / slots as u32)
    }

    const fn with_width(slots: u32, width: u32) -> Self {
        let mut ones = 0;
        let mut slot = 0;
        while slot < slots {
            ones |= 1 << (slot * width);
            slot += 1;
        }
        Self { ones, highs: ones << (width - 1), width }
    }

    /// Slots of a bucket.
    pub(crate) const fn slots(self) -> usize {
        self.ones.count_ones() as usize
    }

    /// Bits of a fingerprint.
    pub(crate) const fn fingerprint_bits(self) -> u32 {
        self.width - 1
    }

    /// How many values a fingerprint can have: 1 to this number.
    pub(crate) const fn fingerprints(self) -> u32 {
        (1 << self.fingerprint_bits()) - 1
    }

    /// `slot` in every lane.
    #[inline(always)]
    pub(crate) const fn pattern(self, slot: Slot) -> Pattern {
        Pattern(slot.0 as u64 * self.ones)
    }

    /// Marks (highest bit of the lane) the slots of `word` that equal the pattern. Exact up to the lowest mark; non-zero
    /// exactly if some slot matches.
    #[inline(always)]
    pub(crate) const fn matches(self, word: u64, pattern: Pattern) -> u64 {
        self.zeros(word ^ pattern.0)
    }

    /// Like [`matches`](Self::matches), but every mark is exact.
    #[inline(always)]
    pub(crate) const fn matches_exact(self, word: u64, pattern: Pattern) -> u64 {
        self.zeros_exact(word ^ pattern.0)
    }

    /// Whether some slot of `word` equals the pattern.
    #[inline(always)]
    pub(crate) const fn contains(self, word: u64, pattern: Pattern) -> bool {
        self.matches(word, pattern) != 0
    }

    /// Marks the slots of `word` that are empty. Exact up to the lowest mark.
    #[inline(always)]
    pub(crate) const fn zeros(self, word: u64) -> u64 {
        // The displaced count lies above all slots: no borrow comes from it.
        word.wrapping_sub(self.ones) & !word & self.highs
    }

    #[inline(always)]
    const fn zeros_exact(self, word: u64) -> u64 {
        let lows = self.highs - self.ones;
        !(((word & lows) + lows) | word) & self.highs
    }

    /// Whether every slot of `word` is taken.
    #[inline(always)]
    pub(crate) const fn is_full(self, word: u64) -> bool {
        self.zeros(word) == 0
    }

    /// `word` with `slot` in its lowest empty slot, `None` if it is full.
    #[inline(always)]
    pub(crate) const fn placed(self, word: u64, slot: Slot) -> Option<u64> {
        match self.zeros(word) {
            0 => None,
            marks => Some(word | (slot.0 as u64) << self.lane(marks)),
        }
    }

    /// `word` without the lowest slot that equals the pattern, `None` if there is none.
    #[inline(always)]
    pub(crate) const fn cleared(self, word: u64, pattern: Pattern) -> Option<u64> {
        match self.matches(word, pattern) {
            0 => None,
            marks => Some(word & !(self.lane_mask() << self.lane(marks))),
        }
    }

    /// Shift of the slot that holds the lowest mark.
    #[inline(always)]
    const fn lane(self, marks: u64) -> u32 {
        marks.trailing_zeros() - (self.width - 1)
    }

    #[inline(always)]
    const fn lane_mask(self) -> u64 {
        (1 << self.width) - 1
    }

    /// The slots of `word` that are taken, lowest first.
    #[inline]
    pub(crate) fn taken(self, word: u64) -> impl Iterator<Item = Slot> {
        (0..self.slots() as u32)
            .map(move |lane| Slot((word >> (lane * self.width) & self.lane_mask()) as u32))
            .filter(|slot| slot.0 != 0)
    }

    /// How many slots of `word` are taken.
    pub(crate) const fn taken_count(self, word: u64) -> usize {
        self.slots() - self.zeros_exact(word).count_ones() as usize
    }

    /// How many slots of `word` hold a displaced fingerprint.
    pub(crate) const fn displaced_slots(self, word: u64) -> usize {
        (word & self.ones).count_ones() as usize
    }
}

/// The content of a slot: `fingerprint << 1 | displaced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// A fingerprint in its home bucket.
    #[inline(always)]
    pub(crate) const fn at_home(fingerprint: u32) -> Self {
        Self(fingerprint << 1)
    }

    /// A fingerprint in its away bucket.
    #[inline(always)]
    pub(crate) const fn away(fingerprint: u32) -> Self {
        Self(fingerprint << 1 | 1)
    }

    #[inline(always)]
    pub(crate) const fn fingerprint(self) -> u32 {
        self.0 >> 1
    }

    #[inline(always)]
    pub(crate) const fn is_displaced(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A slot repeated in every lane, to be compared with a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern(u64);

/// The displaced count of `word`.
#[inline(always)]
pub(crate) const fn displaced_count(word: u64) -> u64 {
    word >> SLOT_BITS
}

/// `word` with its displaced count one higher, `None` if it is saturated (nothing to do).
#[inline]
pub(crate) const fn counted_up(word: u64) -> Option<u64> {
    if displaced_count(word) == SATURATED { None } else { Some(word + COUNT_ONE) }
}

/// `word` with its displaced count one lower, `None` if it is saturated (nothing to do).
///
/// A count of 0 would mean that I2 of `docs/design.md` is broken; it stays 0 in release builds.
#[inline]
pub(crate) const fn counted_down(word: u64) -> Option<u64> {
    debug_assert!(displaced_count(word) != 0, "displaced count underflow");
    match displaced_count(word) {
        0 | SATURATED => None,
        _ => Some(word - COUNT_ONE),
    }
}

//! A bucket as a number: slots packed into a `u64`. Pure functions, no atomics, no allocation.
//!
//! ```text
//! 63..60            59 ........................................ 0
//! displaced count   L slots of 60/L bits each, L in {2,3,4,5,6}
//! ```
//!
//! A slot is `fingerprint << 1 | displaced`; the fingerprint is never 0, so an all-zero slot is empty, and the slot value 1 means
//! *sealed*: a slot of a table that a growing filter has left, into which nothing is ever put again. The displaced count of a bucket says how many fingerprints whose home it is sit in their
//! away bucket; at [`SATURATED`] it stays for ever, since by then its true value is unknown.
//!
//! All layouts run through the same code with run-time masks. Slots are compared all at once inside the word (SWAR):
//! subtracting 1 from every lane borrows out of exactly those lanes that were 0. A borrow can spill into the lane
//! above, so only the *lowest* mark of [`Layout::zeros`] is exact; where marks are counted, [`Layout::zeros_exact`]
//! costs one operation more and never spills.

/// Bits of a word that hold slots.
pub(crate) const SLOT_BITS: u32 = 60;
/// One in the place of the displaced count.
const COUNT_ONE: u64 = 1 << SLOT_BITS;
/// The place of the displaced count.
#[cfg(feature = "growth")]
const COUNT_MASK: u64 = 0xf << SLOT_BITS;
/// The content of a sealed slot.
const SEALED: u32 = 1;
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

/// Evaluates an expression with the number of slots as a constant, so that the compiler knows the layout.
macro_rules! with_slots {
    ($slots:expr, $SLOTS:ident => $do:expr) => {
        with_slots!($slots, $SLOTS, $do, 2 3 4 5 | 6)
    };
    ($slots:expr, $SLOTS:ident, $do:expr, $($number:literal)+ | $last:literal) => {
        match $slots {
            $($number => {
                const $SLOTS: usize = $number;
                $do
            })+
            _ => {
                const $SLOTS: usize = $last;
                $do
            }
        }
    };
}
pub(crate) use with_slots;

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

    /// 1 in every slot, and the highest bit of every slot.
    pub(crate) const fn masks(self) -> (u64, u64) {
        (self.ones, self.highs)
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

    /// Whether some slot of `word` is sealed.
    #[inline(always)]
    pub(crate) const fn has_sealed(self, word: u64) -> bool {
        self.sealed_slots(word) != 0
    }

    /// Marks the slots of `word` that are sealed. Exact up to the lowest mark.
    #[inline(always)]
    pub(crate) const fn sealed_slots(self, word: u64) -> u64 {
        self.zeros(word ^ self.ones)
    }

    /// `word` with its empty slots sealed.
    #[cfg(feature = "growth")]
    #[inline(always)]
    pub(crate) const fn sealed_empties(self, word: u64) -> u64 {
        word | self.zeros_exact(word) >> (self.width - 1)
    }

    /// `word` with the lowest slot that equals the pattern sealed, `None` if there is none.
    #[cfg(feature = "growth")]
    #[inline(always)]
    pub(crate) const fn sealed(self, word: u64, pattern: Pattern) -> Option<u64> {
        match self.matches(word, pattern) {
            0 => None,
            marks => {
                let lane = self.lane(marks);
                Some(word & !(self.lane_mask() << lane) | 1 << lane)
            }
        }
    }

    /// `word` with all its slots sealed, and its displaced count as it was.
    #[cfg(feature = "growth")]
    #[inline(always)]
    pub(crate) const fn sealed_all(self, word: u64) -> u64 {
        self.ones | word & COUNT_MASK
    }

    /// Whether all slots of `word` are sealed.
    #[cfg(feature = "growth")]
    #[inline(always)]
    pub(crate) const fn is_sealed(self, word: u64) -> bool {
        word & !COUNT_MASK == self.ones
    }

    /// Whether all slots of `word` are empty.
    #[cfg(feature = "growth")]
    #[inline(always)]
    pub(crate) const fn is_empty(self, word: u64) -> bool {
        word & !COUNT_MASK == 0
    }

    /// `word`, whose lowest `len` slots are taken, with `slot` in the next one.
    #[inline(always)]
    pub(crate) const fn pushed(self, word: u64, len: u32, slot: Slot) -> u64 {
        word | (slot.0 as u64) << (len * self.width)
    }

    /// `word` with another slot in this lane.
    #[inline(always)]
    pub(crate) const fn replaced(self, word: u64, lane: u32, slot: Slot) -> u64 {
        let shift = lane * self.width;
        word & !(self.lane_mask() << shift) | (slot.0 as u64) << shift
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

    /// The slot of `word` in this lane.
    #[inline(always)]
    pub(crate) const fn slot(self, word: u64, lane: u32) -> Slot {
        Slot((word >> (lane * self.width) & self.lane_mask()) as u32)
    }

    /// The slots of `word` that hold a fingerprint, lowest first.
    #[inline]
    pub(crate) fn taken(self, word: u64) -> impl Iterator<Item = Slot> {
        (0..self.slots() as u32).map(move |lane| self.slot(word, lane)).filter(|slot| slot.0 > SEALED)
    }

    /// Whether a slot of `word`, none of which is sealed, holds a displaced fingerprint.
    #[inline(always)]
    pub(crate) const fn is_any_displaced(self, word: u64) -> bool {
        word & self.ones != 0
    }

    /// Hands over the slots that hold a displaced fingerprint, lowest first, of a word that has one and no sealed slot; and whether each is one, since a second one is
    /// looked for always. Few have more, so that hardly any branch is mispredicted.
    #[inline(always)]
    pub(crate) fn each_displaced(self, word: u64, mut take: impl FnMut(Slot, bool)) {
        let mut left = word & self.ones;
        take(self.next_displaced(word, &mut left), true);
        let is_second = left != 0;
        take(self.next_displaced(word, &mut left), is_second);
        while left != 0 {
            take(self.next_displaced(word, &mut left), true);
        }
    }

    /// The slot of the lowest lane that is left, which is left no more; any slot if none is.
    #[inline(always)]
    fn next_displaced(self, word: u64, left: &mut u64) -> Slot {
        let lane = left.trailing_zeros();
        *left &= left.wrapping_sub(1);
        Slot((word.wrapping_shr(lane) & self.lane_mask()) as u32)
    }

    /// How many slots of `word` hold a fingerprint.
    pub(crate) const fn taken_count(self, word: u64) -> usize {
        self.slots() - self.zeros_exact(word & !self.ones).count_ones() as usize
    }

    /// Whether a slot of `word`, none of which is sealed, holds a fingerprint of which so many topmost bits are not these.
    #[inline(always)]
    pub(crate) const fn has_other_top(self, word: u64, bits: u32, top: u64) -> bool {
        let shift = self.width - bits;
        let mask = (((1 << bits) - 1) << shift) * self.ones;
        let other = (word & mask) ^ ((top << shift) * self.ones);
        self.highs & !self.zeros_exact(other) & !self.zeros_exact(word) != 0
    }

    /// How many slots of all these words hold a fingerprint: counted lane by lane, and the lanes are added up only now and then.
    pub(crate) fn taken_in<W: Copy>(self, words: &[W], value: impl Fn(W) -> u64) -> u64 {
        /// As many words as the narrowest lane can count.
        const MOST: usize = 1 << 9;
        let taken = |word: u64| (self.highs & !self.zeros_exact(word & !self.ones)) >> (self.width - 1);
        let in_lanes = words.chunks(MOST).map(|words| words.iter().map(|word| taken(value(*word))).sum::<u64>());
        in_lanes
            .map(|lanes| (0..self.slots() as u32).map(|lane| u64::from(self.slot(lanes, lane).0)).sum::<u64>())
            .sum()
    }

    /// How many slots of `word` hold a displaced fingerprint.
    pub(crate) const fn displaced_slots(self, word: u64) -> usize {
        (word & self.ones).count_ones() as usize - self.zeros_exact(word ^ self.ones).count_ones() as usize
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

    /// The same fingerprint in its other bucket.
    #[inline(always)]
    pub(crate) const fn elsewhere(self) -> Self {
        Self(self.0 ^ 1)
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

/// `word`, whose displaced count is 0, with this one.
#[inline]
pub(crate) const fn with_displaced_count(word: u64, count: u64) -> u64 {
    word | count << SLOT_BITS
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Slots that a word is made of, lowest first: the slow and obvious way.
    fn split(layout: Layout, word: u64) -> Vec<u64> {
        (0..layout.slots() as u32).map(|lane| word >> (lane * layout.width) & ((1 << layout.width) - 1)).collect()
    }

    /// The marks of those slots for which `marked` holds.
    fn marks(layout: Layout, word: u64, marked: impl Fn(u64) -> bool) -> u64 {
        let high = |lane: usize| 1 << (lane as u32 * layout.width + layout.width - 1);
        split(layout, word).iter().enumerate().filter(|(_, slot)| marked(**slot)).map(|(lane, _)| high(lane)).sum()
    }

    /// Everything that the rest of the crate does with a word, against the obvious way.
    fn check(layout: Layout, word: u64, slot: Slot) {
        let slots = split(layout, word);
        let equal = marks(layout, word, |one| one == u64::from(slot.0));
        let empty = marks(layout, word, |one| one == 0);
        let pattern = layout.pattern(slot);
        assert_eq!(layout.matches_exact(word, pattern), equal);
        assert_eq!(layout.contains(word, pattern), equal != 0);
        assert_eq!(layout.matches(word, pattern) & equal, equal, "no mark is missing");
        assert_eq!(layout.matches(word, pattern).trailing_zeros(), equal.trailing_zeros(), "the lowest mark is exact");
        assert_eq!(layout.zeros_exact(word), empty);
        assert_eq!(layout.zeros(word).trailing_zeros(), empty.trailing_zeros());
        assert_eq!(layout.is_full(word), empty == 0);

        let taken: Vec<u64> = slots.iter().copied().filter(|slot| *slot > u64::from(SEALED)).collect();
        assert!(layout.taken(word).map(|slot| u64::from(slot.0)).eq(taken.iter().copied()));
        assert_eq!(layout.taken_count(word), taken.len());
        assert_eq!(layout.displaced_slots(word), taken.iter().filter(|slot| *slot & 1 != 0).count());

        let sealed = slots.contains(&u64::from(SEALED));
        assert_eq!(layout.has_sealed(word), sealed);
        let away: Vec<u64> = taken.iter().copied().filter(|slot| slot & 1 != 0).collect();
        if !sealed {
            for bits in 0..layout.width {
                let top = u64::from(slot.0) >> (layout.width - bits);
                let other = taken.iter().any(|slot| slot >> (layout.width - bits) != top);
                assert_eq!(layout.has_other_top(word, bits, top), other);
            }
            if layout.is_any_displaced(word) {
                let mut each = Vec::new();
                layout.each_displaced(word, |slot, is_one| each.extend(is_one.then_some(u64::from(slot.0))));
                assert_eq!(each, away);
            }
        }
        if layout.width >= 10 {
            // As many as it takes to add up once, and some.
            assert_eq!(layout.taken_in(&[word; 600], |word| word), 600 * taken.len() as u64);
        }

        let placed = slots.iter().position(|slot| *slot == 0).map(|lane| {
            let mut slots = slots.clone();
            slots[lane] = u64::from(slot.0);
            slots
        });
        assert_eq!(layout.placed(word, slot).map(|word| split(layout, word)), placed);
        let cleared = slots.iter().position(|one| *one == u64::from(slot.0)).map(|lane| {
            let mut slots = slots.clone();
            slots[lane] = 0;
            slots
        });
        assert_eq!(layout.cleared(word, pattern).map(|word| split(layout, word)), cleared);
        for changed in [layout.placed(word, slot), layout.cleared(word, pattern)].into_iter().flatten() {
            assert_eq!(displaced_count(changed), displaced_count(word), "slots leave the count alone");
        }
    }

    /// All words and all slots of layouts with lanes so narrow that they can be gone through.
    #[test]
    fn exhaustive_for_narrow_lanes() {
        for (slots, width) in [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2), (6, 2)] {
            let layout = Layout::with_width(slots, width);
            for word in 0..1 << (slots * width) {
                for slot in 2..1 << width {
                    check(layout, word, Slot(slot));
                    check(layout, word | 0xf << SLOT_BITS, Slot(slot));
                }
            }
        }
    }

    proptest! {
        /// Words whose slots are, often, empty, equal to the one looked for, or next to it.
        #[test]
        fn all_layouts(slots in Layout::SLOTS, parts in any::<[(u8, u32); 6]>(), slot in any::<u32>(), count in 0_u64..16) {
            let layout = Layout::new(slots);
            let mask = layout.lane_mask() as u32;
            let slot = Slot((slot & mask).max(2));
            let lanes = parts.map(|(kind, other)| match kind % 5 {
                0 => 0,
                1 => slot.0,
                2 => slot.0 ^ 1,
                3 => slot.0.wrapping_add(1) & mask,
                _ => other & mask,
            });
            let word = lanes[..slots].iter().rev().fold(0, |word, lane| word << layout.width | u64::from(*lane));
            check(layout, word | count << SLOT_BITS, slot);
        }
    }

    #[test]
    fn layouts_are_those_of_the_design() {
        let bits: Vec<_> = Layout::SLOTS.map(|slots| Layout::new(slots).fingerprint_bits()).collect();
        assert_eq!(bits, [29, 19, 14, 11, 9]);
        for slots in Layout::SLOTS {
            assert_eq!(Layout::new(slots).slots(), slots);
            assert_eq!(u64::from(Layout::new(slots).fingerprints()), (1 << Layout::new(slots).fingerprint_bits()) - 1);
        }
    }

    #[test]
    fn counts_saturate_and_stay() {
        let slots = 0x0123_4567_89ab_cdef;
        let mut word = slots;
        for count in 1..=SATURATED {
            word = counted_up(word).unwrap();
            assert_eq!((displaced_count(word), word & (COUNT_ONE - 1)), (count, slots));
        }
        assert_eq!(counted_up(word), None);
        assert_eq!(counted_down(word), None);
        let mut word = counted_up(slots).and_then(counted_up).unwrap();
        for count in [1, 0] {
            word = counted_down(word).unwrap();
            assert_eq!((displaced_count(word), word & (COUNT_ONE - 1)), (count, slots));
        }
    }
}

//! How large the first table of a growing filter is, which layout it has, and how often it may double.
//!
//! A table of `base` buckets with fingerprints of `F` values has a rate of about `n / (base F)` with `n` keys, whatever its size: each doubling spends a bit of
//! the fingerprints. So for one layout and one base everything is possible up to some largest number of keys, the smaller of what the table
//! holds after as many doublings as it has bits for, and what the rate allows; and errors can say exactly what would have been possible.

use crate::{
    error::BuildError,
    hash::MAX_BUCKETS,
    sizing::{DEFAULT_RATE, buckets, dependable_load, scatter},
    word::Layout,
};

/// Base buckets that a growing filter has at least: after some doublings it is as many small tables of this size, and their load must not
/// differ by much.
const SMALLEST_BASE: f64 = 4096.0;
/// Bits of a fingerprint that growth leaves: fewer give too few away buckets to choose from.
const BITS_LEFT: u32 = 6;
/// How often a filter doubles at most if no maximum is asked for.
const DEFAULT_DOUBLINGS: u32 = 7;

/// A filter that grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GrowthPlan {
    pub(crate) layout: Layout,
    /// Buckets of the first table.
    pub(crate) base: usize,
    /// How often it may double.
    pub(crate) doublings: u32,
}

/// What was asked for.
#[derive(Clone, Copy)]
struct Wish {
    initial: usize,
    max: usize,
    /// Keys in a class on average, at most: the rate, see `sizing::plan`.
    keys_per_class: f64,
}

/// From the shortest fingerprints to the longest.
fn layouts() -> impl Iterator<Item = Layout> {
    Layout::SLOTS.rev().map(Layout::new)
}

/// The least of the numbers up to `most` for which `holds`, which holds for all above one for which it does.
fn least(most: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    if !holds(most) {
        return None;
    }
    let (mut below, mut found) = (0, most);
    while below < found {
        let middle = usize::midpoint(below, found);
        if holds(middle) { found = middle } else { below = middle + 1 }
    }
    Some(found)
}

impl GrowthPlan {
    /// The plan for a filter that starts with room for `initial` keys, and has a rate of at most `rate` up to `max` keys; and that number. If it is not asked
    /// for: what the filter surely holds after as many doublings as the rate allows, at most [`DEFAULT_DOUBLINGS`].
    pub(crate) fn new(initial: usize, max: Option<usize>, rate: Option<f64>) -> Result<(Self, usize), BuildError> {
        let rate = rate.unwrap_or(DEFAULT_RATE);
        if !(rate > 0.0 && rate < 1.0) {
            return Err(BuildError::InvalidRate { rate });
        }
        let keys_per_class = rate + rate * rate / 2.0;
        let Some(max) = max else {
            let plans = (0..=DEFAULT_DOUBLINGS).rev().flat_map(|doublings| {
                layouts()
                    .filter_map(move |layout| Self::first(layout, initial).map(|first| Self { doublings, ..first }))
            });
            let mut possible = plans.filter(|plan| {
                plan.doublings <= plan.most_doublings() && plan.rate_allows(plan.max_capacity(), keys_per_class)
            });
            return match possible.next() {
                Some(plan) => Ok((plan, plan.max_capacity())),
                None => Err(Wish { initial, max: initial, keys_per_class }.refusal(rate)),
            };
        };
        if initial > max {
            return Err(BuildError::InitialAboveMax { initial_capacity: initial, max_capacity: max });
        }
        let wish = Wish { initial, max, keys_per_class };
        wish.plan().map(|plan| (plan, max)).ok_or_else(|| wish.refusal(rate))
    }

    /// The table for `initial` keys, which never doubles, if there are buckets enough.
    fn first(layout: Layout, initial: usize) -> Option<Self> {
        let base = buckets(initial, f64::INFINITY, layout).max(SMALLEST_BASE);
        (base <= MAX_BUCKETS as f64).then_some(Self { layout, base: base as usize, doublings: 0 })
    }

    /// How often its table could double, by the bits of fingerprints and bucket numbers.
    fn most_doublings(&self) -> u32 {
        (self.layout.fingerprint_bits() - BITS_LEFT).min((MAX_BUCKETS / self.base as u64).ilog2())
    }

    /// The same plan with as many doublings as it takes to hold so many keys.
    fn reaching(self, max: usize) -> Option<Self> {
        (0..=self.most_doublings()).map(|doublings| Self { doublings, ..self }).find(|plan| plan.max_capacity() >= max)
    }

    /// The mean number of keys in a class, which is nearly the false-positive rate.
    fn keys_per_class(&self, keys: usize) -> f64 {
        keys as f64 / (self.base as f64 * f64::from(self.layout.fingerprints()))
    }

    fn rate_allows(&self, keys: usize, keys_per_class: f64) -> bool {
        self.keys_per_class(keys) <= keys_per_class
    }

    /// How many distinct keys surely go in after so many doublings.
    pub(crate) fn capacity(&self, doublings: u32) -> usize {
        let slots = self.layout.slots() as f64;
        let base = self.base as f64 * slots;
        // Each of the tables that the one consists of gets its share of the keys, more or less.
        let uneven = if doublings == 0 { 0.0 } else { 4.0 / base.sqrt() };
        // `base` may be as small as models make it, or a snapshot.
        let sure = (base - scatter(self.layout.slots())).max(0.0) * (1.0_f64 - uneven).max(0.0);
        (sure * dependable_load(self.layout.slots()) * (1_u64 << doublings) as f64) as usize
    }

    /// How many distinct keys surely go in at the largest size.
    pub(crate) fn max_capacity(&self) -> usize {
        self.capacity(self.doublings)
    }
}

impl Wish {
    /// What could be, apart from the rate.
    fn plans(self) -> impl Iterator<Item = GrowthPlan> {
        layouts().filter_map(move |layout| GrowthPlan::first(layout, self.initial)?.reaching(self.max))
    }

    /// The layout with the shortest fingerprints that will do.
    fn plan(self) -> Option<GrowthPlan> {
        self.plans().find(|plan| plan.rate_allows(self.max, self.keys_per_class))
    }

    fn is_possible(self) -> bool {
        self.initial <= self.max && self.plan().is_some()
    }

    /// Why there is no plan.
    fn refusal(self, rate: f64) -> BuildError {
        // Starting with the largest table takes the fewest buckets and loses nothing to doublings.
        let Some(lowest_at_once) = (Self { initial: self.max, ..self }).lowest_rate() else {
            return BuildError::CapacityTooLarge { capacity: self.max, largest: self.largest() };
        };
        let lowest = self.lowest_rate();
        match self.smallest_initial() {
            Some(smallest_initial_capacity) => BuildError::GrowthTooFar {
                initial_capacity: self.initial,
                max_capacity: self.max,
                rate,
                lowest,
                smallest_initial_capacity,
            },
            None => BuildError::RateTooLow { rate, lowest: lowest.unwrap_or(lowest_at_once), slots_per_bucket: None },
        }
    }

    /// The largest maximum that can be had at this rate: with this initial capacity, or one as large as the maximum if even that is too much.
    fn largest(self) -> usize {
        let impossible = |max: usize| !Self { initial: self.initial.min(max), max, ..self }.is_possible();
        least(self.max, impossible).map_or(self.max, |too_large| too_large.saturating_sub(1))
    }

    /// The lowest rate that can be had with these capacities.
    fn lowest_rate(self) -> Option<f64> {
        let lowest = self.plans().map(|plan| plan.keys_per_class(self.max)).reduce(f64::min)?;
        // The inverse of `rate + rate^2 / 2`, and not a rounding error below it.
        let mut rate = 2.0 * lowest / ((1.0 + 2.0 * lowest).sqrt() + 1.0);
        while rate + rate * rate / 2.0 < lowest {
            rate *= 1.0 + f64::EPSILON;
        }
        (rate < 1.0).then_some(rate.max(f64::MIN_POSITIVE))
    }

    /// The smallest initial capacity with which this maximum can be had at this rate.
    fn smallest_initial(self) -> Option<usize> {
        let smallest = |layout: Layout, doublings: u32| {
            let plan = |initial| GrowthPlan::first(layout, initial).map(|first| GrowthPlan { doublings, ..first });
            // More initial keys mean more buckets, which hold more and have a lower rate. More buckets than there can be hold anything.
            let enough = |initial: usize| {
                plan(initial).is_none_or(|plan| {
                    plan.max_capacity() >= self.max && plan.rate_allows(self.max, self.keys_per_class)
                })
            };
            let initial = least(self.max, enough)?;
            plan(initial).filter(|plan| doublings <= plan.most_doublings()).map(|_| initial)
        };
        layouts()
            .flat_map(|layout| (0..=layout.fingerprint_bits() - BITS_LEFT).map(move |doublings| (layout, doublings)))
            .filter_map(|(layout, doublings)| smallest(layout, doublings))
            .min()
    }
}

//! How large a table has to be: from capacity and false-positive rate to a layout and a number of buckets.
//!
//! Two things bound the number of buckets from below, and the layout that needs the fewest wins:
//!
//! - **The rate.** A false positive is a stored key of the same class, so with `n` keys in `b` buckets, fingerprints of `F` values:
//!   `rate = 1 - exp(-n / (b F))` (the displaced bit makes a class exact: see `docs/design.md`).
//! - **The load.** `n` distinct keys have to go in, with any seed. The largest dependable loads were measured
//!   (`tests/load.rs`). Small tables take more on average but scatter more, so every table gets a few slots on top.
//!
//! The number of buckets is even: then no class has its home for its away bucket (see [`crate::hash`]), and few keys cannot fill the one bucket that they all have.

use crate::{error::BuildError, hash::MAX_BUCKETS, word::Layout};

/// The rate if none is asked for.
pub(crate) const DEFAULT_RATE: f64 = 0.001;
/// Slots that every table has on top, for the scatter of small ones. With two in a bucket five keys that have the same two buckets are too many, and such are the
/// likeliest of all: with these slots, less than one filter in a million refuses a key early (`tests/load.rs`).
pub(crate) const fn scatter(slots: usize) -> f64 {
    match slots {
        2 => 128.0,
        _ => 48.0,
    }
}

/// No table is planned emptier than this at capacity just to reach a rate; a layout with longer fingerprints is better.
const LOWEST_LOAD: f64 = 0.5;

/// A table that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) buckets: usize,
}

/// The largest load that a table with so many slots in a bucket takes with every seed, at any size (a percent or more below the mean load
/// at the first failure in a table of 100 million slots, which is lower than that of smaller ones).
pub(crate) const fn dependable_load(slots: usize) -> f64 {
    match slots {
        2 => 0.83,
        3 => 0.915,
        4 => 0.945,
        5 => 0.955,
        _ => 0.96,
    }
}

/// The load of a table that is filled with a set that is known: such that it takes the bits per key that README's table of sizes has for a full one.
const fn packed_load(slots: usize) -> f64 {
    match slots {
        2 => 0.866,
        3 => 0.929,
        4 => 0.953,
        5 => 0.964,
        _ => 0.971,
    }
}

/// The smallest table with the layout of a plan that holds so many keys, all known, at a rate (see [`plan`]).
pub(crate) fn packed(keys: usize, rate: Option<f64>, plan: Plan) -> Plan {
    let Plan { layout, buckets } = plan;
    let keys_per_class = rate.map_or(f64::INFINITY, |rate| rate + rate * rate / 2.0);
    let by_rate = keys as f64 / (keys_per_class * f64::from(layout.fingerprints()));
    let by_load = keys as f64 / (packed_load(layout.slots()) * layout.slots() as f64);
    Plan { layout, buckets: buckets.min(even_above(by_rate.max(by_load)) as usize) }
}

/// The chance that an absent key answers "maybe present" with `keys` distinct keys in the table.
pub(crate) fn false_positive_rate(keys: usize, buckets: usize, layout: Layout) -> f64 {
    // The series of 1 - exp(-x): x is at most 6 / 511, so the next term is below 1e-7 of the result; 6 / 64 and 1e-4 in a filter that grows.
    let x = keys as f64 / (buckets as f64 * f64::from(layout.fingerprints()));
    x * (1.0 - x / 2.0 * (1.0 - x / 3.0))
}

/// The rate that has to hold, if any has to: if neither it nor the layout is asked for, the default one.
pub(crate) fn rate(asked: Option<f64>, slots: Option<usize>) -> Option<f64> {
    asked.or(if slots.is_none() { Some(DEFAULT_RATE) } else { None })
}

/// The table for `capacity` keys at `rate`, `None` meaning the default rate, or, where the layout is given, none to hold.
pub(crate) fn plan(capacity: usize, rate: Option<f64>, slots: Option<usize>) -> Result<Plan, BuildError> {
    if let Some(slots_per_bucket) = slots
        && !Layout::SLOTS.contains(&slots_per_bucket)
    {
        return Err(BuildError::InvalidSlotsPerBucket { slots_per_bucket });
    }
    let rate = self::rate(rate, slots);
    if let Some(rate) = rate
        && !(rate > 0.0 && rate < 1.0)
    {
        return Err(BuildError::InvalidRate { rate });
    }
    // The mean number of keys in a class: -ln(1 - rate) from below, the inverse of `false_positive_rate`. Where the rate is so
    // large that the difference counts, the load alone decides.
    let keys_per_class = rate.map_or(f64::INFINITY, |rate| rate + rate * rate / 2.0);
    let candidates = match slots {
        Some(slots) => slots..=slots,
        None => Layout::SLOTS,
    };
    let reaches =
        |layout: Layout| LOWEST_LOAD * layout.slots() as f64 <= keys_per_class * f64::from(layout.fingerprints());
    let best = candidates
        .clone()
        .map(Layout::new)
        .filter(|layout| reaches(*layout))
        .map(|layout| (layout, buckets(capacity, keys_per_class, layout)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other));
    let Some((layout, buckets)) = best else {
        let longest = Layout::new(*candidates.start());
        let lowest = LOWEST_LOAD * longest.slots() as f64 / f64::from(longest.fingerprints());
        return Err(BuildError::RateTooLow { rate: rate.unwrap_or(DEFAULT_RATE), lowest, slots_per_bucket: slots });
    };
    if buckets > MAX_BUCKETS as f64 || buckets * 8.0 > isize::MAX as f64 {
        let most = (MAX_BUCKETS as f64).min(isize::MAX as f64 / 8.0);
        // A share below the exact bound, so that what the message offers works in spite of rounding.
        let largest = (most * keys_per_bucket(keys_per_class, layout) * 0.999) as usize;
        return Err(BuildError::CapacityTooLarge { capacity, largest });
    }
    Ok(Plan { layout, buckets: buckets as usize })
}

/// How many keys a bucket may hold on average.
fn keys_per_bucket(keys_per_class: f64, layout: Layout) -> f64 {
    let by_load = dependable_load(layout.slots()) * layout.slots() as f64;
    by_load.min(keys_per_class * f64::from(layout.fingerprints()))
}

/// The next even number, exactly; numbers that do not fit 64 bits give the largest that do.
pub(crate) const fn even_above(number: f64) -> f64 {
    (number / 2.0) as u64 as f64 * 2.0 + 2.0
}

/// The number of buckets for `capacity` keys, an even number.
pub(crate) fn buckets(capacity: usize, keys_per_class: f64, layout: Layout) -> f64 {
    let capacity = capacity as f64;
    let by_rate = capacity / (keys_per_class * f64::from(layout.fingerprints()));
    let by_load = (capacity / dependable_load(layout.slots()) + scatter(layout.slots())) / layout.slots() as f64;
    // Numbers that do not fit are far above the most buckets possible and refused by the caller.
    even_above(by_rate.max(by_load))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn layouts_follow_from_the_rate() {
        let slots = |rate| plan(1_000_000, Some(rate), None).unwrap().layout.slots();
        assert_eq!([0.5, 0.01, 0.003, 0.001, 1e-4, 5e-6, 1e-6, 3e-9].map(slots), [6, 6, 5, 4, 3, 3, 2, 2]);
        let load = |rate| 1e6 / (plan(1_000_000, Some(rate), None).unwrap().buckets as f64 * slots(rate) as f64);
        assert!((0.85..0.87).contains(&load(0.01)), "1% is met by 6x10 at about 86%");
    }

    #[test]
    fn planned_rates_hold() {
        for capacity in [0, 1, 10, 1_000, 123_457, if usize::BITS == 64 { 1_000_000_000 } else { 50_000_000 }] {
            for tenths in 1..=87 {
                let rate = 10_f64.powf(-f64::from(tenths) / 10.0);
                let plan = plan(capacity, Some(rate), None).unwrap();
                let planned = false_positive_rate(capacity, plan.buckets, plan.layout);
                assert!(planned <= rate, "{capacity} keys at {rate}: {planned} with {plan:?}");
                assert!(plan.buckets.is_multiple_of(2));
            }
        }
    }

    #[test]
    fn memory_stays_near_the_sizing_table() {
        // Bits per key when full, by slots: the table in README.
        for (slots, full) in [(3, 22.8), (4, 16.7), (5, 13.2), (6, 11.0)] {
            for capacity in [10_000, 10_001, 33_333, 1_000_000, 1 << 28] {
                let plan = plan(capacity, None, Some(slots)).unwrap();
                let bits = plan.buckets as f64 * 64.0 / capacity as f64;
                assert!(bits <= 1.04 * full, "{slots} slots, capacity {capacity}: {bits} bits per key");
            }
        }
    }

    #[test]
    fn bad_settings_are_errors() {
        for rate in [0.0, -0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(plan(1, Some(rate), None), Err(BuildError::InvalidRate { .. })), "{rate}");
        }
        for slots_per_bucket in [0, 1, 7, 64, usize::MAX] {
            let error = plan(1, None, Some(slots_per_bucket)).unwrap_err();
            assert_eq!(error, BuildError::InvalidSlotsPerBucket { slots_per_bucket });
        }
        for rate in [1e-9, 1e-20, f64::MIN_POSITIVE, 5e-324] {
            assert!(matches!(plan(1, Some(rate), None), Err(BuildError::RateTooLow { slots_per_bucket: None, .. })));
            assert!(matches!(
                plan(1, Some(rate), Some(4)),
                Err(BuildError::RateTooLow { slots_per_bucket: Some(4), .. })
            ));
        }
        for capacity in [usize::MAX, usize::MAX / 2, usize::MAX / 3] {
            let error = plan(capacity, None, None).unwrap_err();
            let BuildError::CapacityTooLarge { capacity: named, largest } = error else { panic!("{error}") };
            assert_eq!(named, capacity);
            assert!(plan(largest, None, None).is_ok(), "what the message offers works: {largest}");
        }
    }

    #[test]
    fn limits_that_messages_name_work() {
        for slots in [None, Some(2), Some(3), Some(4), Some(5), Some(6)] {
            let Err(BuildError::RateTooLow { lowest, .. }) = plan(1, Some(1e-300), slots) else { panic!() };
            assert!(plan(1, Some(lowest), slots).is_ok(), "{lowest} with {slots:?}");
        }
    }
}

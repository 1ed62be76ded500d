//! Real keys from files, one per line: `ci/real-keys.sh` gets some and runs this.

use std::{collections::BTreeSet, env, fs};

use koel::CuckooFilter;

const SEEDS: u64 = 20;

/// Every other line goes into a filter. All of these have to be found, and of the others as many as the filter says, within five
/// standard deviations.
#[test]
#[ignore = "needs files of keys: KOEL_KEY_FILES=one:two, see ci/real-keys.sh"]
fn real_keys_are_found_and_others_at_the_stated_rate() {
    let files = env::var_os("KOEL_KEY_FILES").expect("KOEL_KEY_FILES: files of keys, separated by colons");
    for file in env::split_paths(&files) {
        let text = fs::read_to_string(&file).unwrap();
        // In order, so that what is in and what is asked for are as similar as can be.
        let lines = text.lines().collect::<BTreeSet<_>>();
        assert!(lines.len() >= 1_000, "{} has only {} different lines", file.display(), lines.len());
        let present = lines.iter().copied().step_by(2).collect::<Vec<_>>();
        let absent = lines.iter().copied().skip(1).step_by(2).collect::<Vec<_>>();
        for slots in 2..=6 {
            let mut found = 0.0;
            let mut expected = 0.0;
            let mut variance = 0.0;
            for seed in 0..SEEDS {
                let filter = filled(&present, slots, seed);
                assert!(present.iter().all(|key| filter.contains(*key)), "false negative in {}", file.display());
                let rate = filter.false_positive_rate();
                found += absent.iter().filter(|key| filter.contains(**key)).count() as f64;
                expected += absent.len() as f64 * rate;
                variance += absent.len() as f64 * rate * (1.0 - rate);
            }
            println!("{}: {slots} slots: {found} false positives, expected {expected:.2}", file.display());
            // Where next to none are expected, one is no evidence.
            let tolerance = (5.0 * variance.sqrt()).max(1.0);
            assert!(
                (found - expected).abs() <= tolerance,
                "{found} false positives, expected {expected} ± {tolerance}"
            );
        }
    }
}

fn filled(keys: &[&str], slots: usize, seed: u64) -> CuckooFilter<str> {
    let filter = CuckooFilter::builder().capacity(keys.len()).slots_per_bucket(slots).seed(seed).build().unwrap();
    keys.iter().for_each(|key| filter.insert(*key).unwrap());
    assert_eq!(filter.len(), keys.len());
    filter
}

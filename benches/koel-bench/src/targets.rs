//! The figures to reach, computed from the records of the run itself.
//!
//! Each is a ratio of two medians of the same run. Where a figure is asked of several loads or sizes, the worst counts, and its case is named.

use serde::Serialize;

use crate::{
    experiments::snapshots,
    measurement::{LIMIT_ONE, LIMIT_TWO, Measurement},
    options::{Bytes, Settings},
    peers::{
        self,
        koel::{BATCH, SINGLE},
    },
};

const ATOMIC: &str = "atomic-cuckoo-filter";
const FASTEST: &str = "sbbf-rs";
const GIBIBYTE: u64 = 1 << 30;
const MEMORY: u64 = 64 << 20;
/// The load at which tables in memory are compared.
const LOAD: u32 = 75;

/// A figure to reach, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What is divided by what.
    pub target: String,
    /// At least so much.
    pub wanted: f64,
    /// The worst case of the run.
    pub measured: f64,
    /// Whether that is enough.
    pub reached: bool,
    /// Which case it was, of how many, and how those do.
    pub case: String,
}

/// The records, to be asked.
struct Records<'m>(Vec<&'m Measurement>);

impl<'m> Records<'m> {
    fn of(&self, experiment: &'static str, peer: &str) -> impl Iterator<Item = &'m Measurement> {
        self.0.iter().copied().filter(move |one| one.experiment == experiment && one.peer == peer)
    }

    /// The record of another filter in the same case.
    fn beside(&self, one: &Measurement, peer: &str) -> Option<&'m Measurement> {
        self.0.iter().copied().find(|other| other.peer == peer && one.same_case(other))
    }

    /// The best of several filters in the same case.
    fn best_beside(&self, one: &Measurement, peers: &[&str]) -> Option<&'m Measurement> {
        let found = peers.iter().filter_map(|peer| self.beside(one, peer));
        found.max_by(|one, other| one.median.total_cmp(&other.median))
    }
}

/// The worst of some ratios as an outcome; none if nothing of it was measured.
fn worst(target: impl Into<String>, wanted: f64, ratios: impl Iterator<Item = (f64, String)>) -> Option<Outcome> {
    let mut ratios: Vec<(f64, String)> = ratios.collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let count = ratios.len();
    let enough = ratios.iter().filter(|(ratio, _)| *ratio >= wanted).count();
    let median = ratios.get(count / 2)?.0;
    let (measured, case) = ratios.into_iter().next()?;
    let case = match count {
        1 => case,
        _ => format!("{case} (worst of {count} cases: {enough} reach it, the median is {median:.2})"),
    };
    Some(Outcome { target: target.into(), wanted, measured, reached: measured >= wanted, case })
}

fn case(one: &Measurement) -> String {
    let mut text = format!("{}, {} at {}%", one.operation, Bytes(one.bytes), one.load);
    if let Some(hits) = one.hits {
        text += &format!(", {hits}% hits");
    }
    if one.threads > 1 {
        text += &format!(", {} threads", one.threads);
    }
    text
}

/// All outcomes of which the run has the figures.
pub fn evaluate(measurements: &[Measurement], settings: &Settings) -> Vec<Outcome> {
    let records = Records(measurements.iter().filter(|one| one.is_measured()).collect());
    let cached = settings.sizes.iter().copied().filter(|bytes| *bytes <= 2 << 20).max();
    let mut all = Vec::new();
    memory(&records, &mut all);
    if let Some(cached) = cached {
        in_cache(&records, cached, &mut all);
    }
    inserts(&records, &mut all);
    atomic_peers(&records, &mut all);
    threads(&records, &mut all);
    growth(&records, &mut all);
    snapshots(&records, &mut all);
    bloom(&records, &mut all);
    all
}

fn growth(records: &Records<'_>, all: &mut Vec<Outcome>) {
    let find = |peer: &str, operation: &str| records.of("growth", peer).find(|one| one.operation == operation);
    let mut add = |target: &str, wanted: f64, ratio: Option<f64>, case: &str| {
        all.extend(worst(
            format!("growth: {target}"),
            wanted,
            ratio.map(|ratio| (ratio, case.to_string())).into_iter(),
        ));
    };
    for batch in ["", " batch"] {
        let growing = format!("koel growing{batch}");
        let built = format!("{growing}, reserved");
        let to = |one: &str, what: &str, other: &str, other_what: &str| {
            Some(find(one, what)?.median / find(other, other_what)?.median)
        };
        let inserts = to(&growing, "insert, all keys", &built, "insert, all keys");
        add("inserting all keys, to a table of the last size", 0.5, inserts, &growing);
        let draining = to(&growing, "look-up, half drained", &growing, "look-up, idle");
        add("look-ups while half drained, to idle", 0.6, draining, &growing);
        let after = to(&growing, "look-up, all keys in", &built, "look-up, all keys in");
        add("look-ups after growth, to a table built at that size", 1.0 / 1.1, after, &growing);
        let fixed = to(&growing, "look-up, all keys in", &format!("koel CuckooFilter{batch}"), "look-up, all keys in");
        add("look-ups after growth, to a CuckooFilter", 1.0 / 1.1, fixed, &growing);
    }
    let ours = "koel growing";
    let per = |what: &str, most: f64| Some(most / find(ours, what)?.median);
    add(
        "million fingerprints drained per second by one thread, to 60",
        1.0,
        per("draining, one thread", 60.0).map(f64::recip),
        ours,
    );
    add("20 us to the latency of an insert, p99.9", 1.0, per("latency, p99.9", 20e3), ours);
    let longest = find("koel growing, small pages", "latency, max").map(|one| 2e6 / one.median);
    add("2 ms to the latency of an insert, longest, on small pages", 1.0, longest, ours);
}

fn snapshots(records: &Records<'_>, all: &mut Vec<Outcome>) {
    let of = |operation: &'static str| {
        let ours = [SINGLE, BATCH].into_iter().flat_map(|peer| records.of("snapshots", peer));
        ours.filter(move |one| one.operation == operation)
    };
    let other = |one: &Measurement, operation: &'static str| {
        of(operation).find(|other| (other.bytes, &other.peer) == (one.bytes, &one.peer)).map(|other| other.median)
    };
    let mut add = |target: &str, wanted, ratios: Vec<(f64, String)>| {
        all.extend(worst(format!("snapshots: {target}"), wanted, ratios.into_iter()));
    };
    for operation in [snapshots::TO_BYTES, snapshots::FROM_BYTES] {
        add(&format!("{operation}, to 1 GB/s"), 1.0, of(operation).map(|one| (one.median, case(one))).collect());
        let to_copy = of(operation).filter_map(|one| Some((one.median / other(one, snapshots::MEMCPY)?, case(one))));
        add(&format!("{operation}, to memcpy (no figure to reach)"), 0.0, to_copy.collect());
    }
    for (view, owned) in [(snapshots::VIEW, SINGLE), (snapshots::VIEW_BATCH, BATCH)] {
        let ratios = to_peer(records, "snapshots", view, owned, |one| one.operation == snapshots::LOOK_UP);
        add(&format!("look-ups of {view}, to {owned}"), 0.9, ratios.collect());
    }
    let beside = of(snapshots::BESIDE).filter_map(|one| Some((one.median / other(one, snapshots::IDLE)?, case(one))));
    add("look-ups beside snapshots, to idle", 0.8, beside.collect());
    let gate =
        of(snapshots::GATE).filter_map(|one| Some((0.1 * other(one, snapshots::DISPLACED)? / one.median, case(one))));
    add("a tenth of a displaced insert, to the gate", 1.0, gate.collect());
    add("1 ms, to opening a map", 1.0, of(snapshots::OPEN).map(|one| (1e6 / one.median, case(one))).collect());
    let known = of(snapshots::FROM_HASHES)
        .filter_map(|one| Some((one.median / other(one, snapshots::INSERT_HASHES)?, case(one))));
    add("from_hashes, to insert_hashes", 1.0, known.collect());
}

/// Bloom filters, against those of others.
fn bloom(records: &Records<'_>, all: &mut Vec<Outcome>) {
    let (standard, blocked, atomic) = ("koel bloom batch", "koel blocked batch", "fastbloom atomic");
    let look_ups = to_peer(records, "lookups", blocked, FASTEST, |_| true);
    all.extend(worst(format!("{blocked} to {FASTEST}, equal bytes: look-ups"), 0.8, look_ups));
    let look_ups = to_peer(records, "lookups", standard, atomic, |_| true);
    all.extend(worst(format!("{standard} to {atomic}, sized for the same rate: look-ups"), 1.0, look_ups));
    let two = |one: &Measurement| one.operation == "insert only" && one.threads == 2;
    let inserts = to_peer(records, "threads", standard, atomic, two);
    all.extend(worst(format!("{standard} to {atomic}, inserts of two threads"), 1.0, inserts));
}

/// Ratios to another filter in all cases that the filter accepts.
fn to_peer<'r>(
    records: &'r Records<'_>,
    experiment: &'static str,
    ours: &'r str,
    peer: &'r str,
    accept: impl Fn(&Measurement) -> bool + 'r,
) -> impl Iterator<Item = (f64, String)> + 'r {
    let own = records.of(experiment, ours).filter(move |one| accept(one));
    own.filter_map(move |one| records.beside(one, peer).map(|other| (one.median / other.median, case(one))))
}

fn memory(records: &Records<'_>, all: &mut Vec<Outcome>) {
    for (hits, what) in [(0, "absent"), (100, "present")] {
        let at = |bytes| move |one: &Measurement| (one.bytes, one.load, one.hits) == (bytes, LOAD, Some(hits));
        let mut add = |bytes, peer, wanted| {
            let target = format!("{} at {LOAD}%: contains_hashes, {what} keys, to {peer}", Bytes(bytes));
            all.extend(worst(target, wanted, to_peer(records, "lookups", BATCH, peer, at(bytes))));
        };
        add(GIBIBYTE, LIMIT_TWO, 1.4);
        add(GIBIBYTE, LIMIT_ONE, 0.75);
        add(MEMORY, LIMIT_ONE, 0.75);
        add(MEMORY, FASTEST, 1.0);
    }
}

/// The filters of one thread that delete.
fn deletable() -> Vec<&'static str> {
    peers::all().iter().filter(|spec| !spec.ours && !spec.shared && spec.removes).map(|spec| spec.name).collect()
}

fn in_cache(records: &Records<'_>, bytes: u64, all: &mut Vec<Outcome>) {
    let size = Bytes(bytes);
    let deletable = deletable();
    for (hits, what, single) in [(0, "absent", 0.75), (100, "present", 1.0)] {
        let accept =
            move |one: &Measurement| (one.bytes, one.hits) == (bytes, Some(hits)) && (50..=90).contains(&one.load);
        let title = |text: &str| format!("{size}, 50 to 90%, {what} keys: {text}");
        all.extend(worst(
            title("contains_hashes to contains_hash"),
            2.2,
            to_peer(records, "lookups", BATCH, SINGLE, accept),
        ));
        all.extend(worst(
            title("contains_hashes to sbbf-rs"),
            1.8,
            to_peer(records, "lookups", BATCH, FASTEST, accept),
        ));
        let avx2 = to_peer(records, "backends", "koel batch, AVX2", SINGLE, accept);
        all.extend(worst(title("contains_hashes on AVX2 to contains_hash"), 1.3, avx2));
        let own = records.of("lookups", SINGLE).filter(|one| accept(one));
        let ratios = own.filter_map(|one| {
            let best = records.best_beside(one, &deletable)?;
            Some((one.median / best.median, format!("{}, against {}", case(one), best.peer)))
        });
        all.extend(worst(title("contains_hash to the fastest deletable peer of one thread"), single, ratios));
    }
}

fn inserts(records: &Records<'_>, all: &mut Vec<Outcome>) {
    let whole = |one: &Measurement| one.bytes == MEMORY && one.operation == "insert, 0 to 95%";
    let last = |one: &Measurement| one.bytes == MEMORY && one.operation == "insert, last 5%" && one.load == 95;
    let size = Bytes(MEMORY);
    let to_atomic = |accept: fn(&Measurement) -> bool| to_peer(records, "inserts", BATCH, ATOMIC, accept);
    all.extend(worst(format!("{size}: insert_hashes to 95%, to {ATOMIC}"), 2.5, to_atomic(whole)));
    let deletable = deletable();
    let ratios = records.of("inserts", BATCH).filter(|one| whole(one)).filter_map(|one| {
        let best = records.best_beside(one, &deletable)?;
        Some((one.median / best.median, format!("{}, against {}", case(one), best.peer)))
    });
    all.extend(worst(format!("{size}: insert_hashes to 95%, to the best deletable peer of one thread"), 1.5, ratios));
    all.extend(worst(format!("{size}: insert_hashes over the last 5%, to {ATOMIC}"), 4.0, to_atomic(last)));
}

fn atomic_peers(records: &Records<'_>, all: &mut Vec<Outcome>) {
    for ours in [BATCH, SINGLE] {
        let mut add = |what: &str, wanted, parts: &[(&'static str, &'static str)]| {
            let ratios = parts.iter().flat_map(|(experiment, operation)| {
                to_peer(records, experiment, ours, ATOMIC, move |one| one.operation.starts_with(operation))
            });
            all.extend(worst(format!("{ours} to {ATOMIC}: {what}"), wanted, ratios));
        };
        add(
            "look-ups, every size, load, kind and number of threads",
            3.0,
            &[("lookups", ""), ("keys", ""), ("threads", "read only"), ("churn", "look-up")],
        );
        add("inserts", 2.0, &[("inserts", ""), ("threads", "insert only")]);
        add("removals", 2.0, &[("removes", "")]);
        add("mixed, that is: ahead", 1.0, &[("threads", "95/5"), ("threads", "50/50")]);
    }
    let bloom = "fastbloom atomic";
    let rate =
        |peer: &str| records.of("false-positives", peer).find(|one| one.operation == "measured").map(|one| one.median);
    let rates = match (rate("koel 4 x 15"), rate(bloom)) {
        (Some(ours), Some(theirs)) => format!(" (false positives measured: {ours:.2e} against {theirs:.2e})"),
        _ => String::new(),
    };
    for ours in [BATCH, SINGLE] {
        let ratios = to_peer(records, "lookups", ours, bloom, |_| true);
        all.extend(worst(format!("{ours} to {bloom}, sized for the same rate: look-ups{rates}"), 1.0, ratios));
    }
}

fn threads(records: &Records<'_>, all: &mut Vec<Outcome>) {
    for ours in [BATCH, SINGLE] {
        for (mix, wanted) in [("read only", 1.8), ("insert only", 1.6), ("95/5", 1.6)] {
            let two = records.of("threads", ours).filter(|one| one.operation == mix && one.threads == 2);
            let ratios = two.filter_map(|two| {
                let one = records
                    .of("threads", ours)
                    .find(|one| (one.threads, one.bytes, &one.operation) == (1, two.bytes, &two.operation))?;
                Some((two.median / one.median, case(two)))
            });
            all.extend(worst(format!("{ours}, two threads to one: {mix}"), wanted, ratios));
        }
        let beside = records.of("churn", ours).filter(|one| one.operation == "look-up beside a writer");
        let ratios = beside.filter_map(|beside| {
            let idle = records
                .of("churn", ours)
                .find(|one| (one.bytes, &one.operation[..]) == (beside.bytes, "look-up, idle"))?;
            Some((beside.median / idle.median, case(beside)))
        });
        all.extend(worst(format!("{ours}: look-ups beside a writer at 90%, to idle"), 0.8, ratios));
    }
}

/// The section of the report.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = "## Targets\n\nRatios of medians of this run; of several cases the worst counts.\n\n".to_string();
    if outcomes.is_empty() {
        return text + "None of the figures to reach was measured in this run.\n";
    }
    text += "| target | at least | measured | reached | case |\n|---|---:|---:|---|---|\n";
    for one in outcomes {
        let reached = if one.reached { "yes" } else { "**no**" };
        text += &format!("| {} | {:.2} | {:.2} | {reached} | {} |\n", one.target, one.wanted, one.measured, one.case);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::Args;

    #[test]
    fn the_worst_case_counts() {
        let settings = Args::try_parse_from(["koel-bench"]).unwrap().settings().unwrap();
        let of = |peer: &str, load, figure| {
            Measurement::new("lookups", "look-up", peer).table(1 << 20, load).hits(0).samples(vec![figure])
        };
        let measurements = [
            of(BATCH, 50, 300.0),
            of(SINGLE, 50, 100.0),
            of(BATCH, 90, 200.0),
            of(SINGLE, 90, 100.0),
            of(FASTEST, 50, 100.0),
        ];
        let outcomes = evaluate(&measurements, &settings);
        let found = |text: &str| outcomes.iter().find(|one| one.target.contains(text)).unwrap();
        let batch = found("contains_hashes to contains_hash");
        assert_eq!((batch.measured, batch.reached), (2.0, false));
        assert!(
            batch.case.contains("90%") && batch.case.contains("of 2 cases: 1 reach it, the median is 3.00"),
            "{}",
            batch.case
        );
        assert!(found("to sbbf-rs").reached);
        assert!(!outcomes.iter().any(|one| one.target.contains("1 GiB")));
        let text = markdown(&outcomes);
        assert!(text.contains("| 2.20 | 2.00 | **no** |"), "{text}");
    }
}

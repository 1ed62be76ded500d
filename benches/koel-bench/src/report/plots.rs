//! Which plots there are. Each file's name begins with its experiment's.

use super::{
    Report,
    chart::{self, Axis, Series},
    tables,
};
use crate::{
    experiments::{false_positives, relocations},
    measurement::{Measurement, Unit},
    options::Bytes,
    peers,
};

/// File name, title and content of each plot that has something to show.
pub(super) fn all(report: &Report<'_>) -> Vec<(String, String, String)> {
    let mut plots = Vec::new();
    let mut add = |file: String, title: String, x: Axis, y: Axis, series: Vec<Series>, lines: bool| {
        if let Some(svg) = chart::draw(&title, &x, &y, &series, lines) {
            plots.push((file, title, svg));
        }
    };
    let sizes = || Axis {
        label: "size of the table",
        log: false,
        names: Some(Box::new(|power| Bytes(1 << power).to_string())),
    };
    let measured = || report.measurements.iter().filter(|one| one.is_measured());
    let speed = "million look-ups per second";

    let of = |experiment: &'static str| move |one: &&Measurement| one.experiment == experiment;
    let hit_names = |hits| if hits == 0 { "absent keys" } else { "present keys" };
    // The load that most sizes were measured at: tables of a gibibyte have one load only.
    let load = most_common(measured().filter(of("lookups")).map(|one| one.load));
    for hits in [0, 100] {
        let shown = measured().filter(of("lookups")).filter(|one| one.hits == Some(hits) && Some(one.load) == load);
        let points = shown.map(|one| (one, (one.bytes as f64).log2(), one.median));
        let title = format!("Look-ups of {} by table size, {}% load, one thread", hit_names(hits), load.unwrap_or(0));
        add(format!("lookups-by-size-{hits}.svg"), title, sizes(), Axis::log(speed), series(points), true);
    }
    for bytes in distinct(measured().filter(of("lookups")).map(|one| one.bytes)) {
        for hits in [0, 100] {
            let shown = measured().filter(of("lookups")).filter(|one| (one.bytes, one.hits) == (bytes, Some(hits)));
            let points: Vec<_> = shown.map(|one| (one, f64::from(one.load), one.median)).collect();
            if distinct(points.iter().map(|(_, load, _)| *load as u64)).len() < 2 {
                continue;
            }
            let title = format!("Look-ups of {} by load, table of {}, one thread", hit_names(hits), Bytes(bytes));
            let x = Axis::linear("load, percent of slots taken");
            add(
                format!("lookups-by-load-{bytes}-{hits}.svg"),
                title,
                x,
                Axis::log(speed),
                series(points.into_iter()),
                true,
            );
        }
    }
    for bytes in distinct(measured().filter(of("inserts")).map(|one| one.bytes)) {
        let shown = measured().filter(of("inserts")).filter(|one| one.bytes == bytes && one.operation.contains("last"));
        let points = shown.map(|one| (one, f64::from(one.load), one.median));
        let title = format!("Inserts by load, table of {}, one thread", Bytes(bytes));
        let (x, y) = (Axis::linear("load, percent of slots taken"), Axis::log("million inserts per second"));
        add(format!("inserts-{bytes}.svg"), title, x, y, series(points), true);
    }
    let mut mixes: Vec<(u64, &str)> =
        measured().filter(of("threads")).map(|one| (one.bytes, &one.operation[..])).collect();
    mixes.dedup();
    for (bytes, mix) in mixes {
        let shown = measured().filter(of("threads")).filter(|one| (one.bytes, &one.operation[..]) == (bytes, mix));
        let points = shown.map(|one| (one, one.threads as f64, one.median));
        let file = mix.replace(|letter: char| !letter.is_alphanumeric(), "-");
        let x = Axis { label: "threads", log: false, names: Some(Box::new(|threads| threads.to_string())) };
        let title = format!("{}, table of {}", capitalised(mix), Bytes(bytes));
        add(
            format!("threads-{bytes}-{file}.svg"),
            title,
            x,
            Axis::log("million operations per second"),
            series(points),
            true,
        );
    }
    latency(report, &mut add);
    inside_inserts(report, &mut add);
    let rates = measured().filter(of("false-positives"));
    let mut points = Vec::new();
    for one in rates.clone().filter(|one| one.operation == "measured" && one.median > 0.0) {
        let bits = rates.clone().find(|bits| bits.unit == Unit::BitsPerKey && bits.peer == one.peer);
        points.extend(bits.map(|bits| (one, bits.median, one.median)));
    }
    let (x, y) = (Axis::linear("bits of memory for each key"), Axis::log("share of absent keys answered \"maybe\""));
    add(
        "false-positives.svg".to_string(),
        "False positives and memory".to_string(),
        x,
        y,
        series(points.into_iter()),
        false,
    );
    let stated = rates.clone().filter(|one| one.operation == false_positives::STATED);
    let points = stated.filter_map(|one| {
        let measured = rates.clone().find(|other| {
            (&other.peer, &other.operation[..]) == (&one.peer, false_positives::MEASURED) && other.median > 0.0
        });
        measured.map(|measured| (one, one.median.log10(), measured.median / one.median))
    });
    let x = Axis { label: "stated share", log: false, names: Some(Box::new(|power| format!("1e{power}"))) };
    let y = Axis::linear("measured share, as a multiple of the stated one");
    let title = "False positives, measured against stated".to_string();
    add("false-positives-stated.svg".to_string(), title, x, y, series(points), false);
    growth(report, &mut add);
    plots
}

/// Moves by load, and all that threads do again, or in vain, because of each other or of a full table. What did not happen is not drawn: its logarithm is nowhere.
fn inside_inserts(report: &Report<'_>, add: &mut impl FnMut(String, String, Axis, Axis, Vec<Series>, bool)) {
    let counted = || report.measurements.iter().filter(|one| one.experiment == "relocations" && one.median > 0.0);
    let x = || Axis::linear("load, percent of slots taken");
    let mut moved: Vec<Series> = Vec::new();
    for one in counted().filter(|one| one.operation == relocations::MOVED) {
        push(&mut moved, &relocations::case(one), true, (f64::from(one.load), one.median));
    }
    let title = "Relocations by load".to_string();
    add("relocations.svg".to_string(), title, x(), Axis::log("fingerprints moved for each key inserted"), moved, true);
    for bytes in distinct(counted().map(|one| one.bytes)) {
        // With as many writers as there were at most they meet most often.
        let writers = counted().filter(|one| one.bytes == bytes).map(|one| one.threads).max();
        let mut events: Vec<Series> = Vec::new();
        for one in counted().filter(|one| one.bytes == bytes && Some(one.threads) == writers) {
            push(&mut events, &one.operation, one.operation != relocations::MOVED, (f64::from(one.load), one.median));
        }
        let threads = writers.map_or_else(String::new, |writers| format!("{writers} writers and a reader"));
        let title = format!("Retries and failures by load, table of {}, {threads}", Bytes(bytes));
        let y = Axis::log("for each key inserted, or look-up");
        add(format!("relocations-retries-{bytes}.svg"), title, x(), y, events, true);
    }
}

/// The whole growth: what inserts take, and the memory.
fn growth(report: &Report<'_>, add: &mut impl FnMut(String, String, Axis, Axis, Vec<Series>, bool)) {
    let timeline = |what: &'static str| {
        let parts = report.measurements.iter().filter(move |one| one.experiment == "growth" && one.operation == what);
        parts.map(|one| (one.peer.ends_with("small pages"), f64::from(one.load), one.median))
    };
    let x = || Axis::linear("percent of the keys inserted");
    let mut latencies = Vec::new();
    for (what, name) in [("timeline, mean", "mean"), ("timeline, p99.9", "p99.9"), ("timeline, max", "longest")] {
        for (small, part, latency) in timeline(what) {
            let name = if small { format!("{name}, small pages") } else { name.to_string() };
            push(&mut latencies, &name, !small, (part, latency));
        }
    }
    let title = "Inserts into a filter that grows, by hundredths of the keys".to_string();
    add("growth-latency.svg".to_string(), title, x(), Axis::log("nanoseconds"), latencies, true);
    let mut memory = Vec::new();
    timeline("timeline, memory")
        .filter(|(small, ..)| !small)
        .for_each(|(_, part, bytes)| push(&mut memory, "memory", true, (part, bytes / f64::from(1 << 20))));
    let title = "Memory of a filter that grows".to_string();
    add("growth-memory.svg".to_string(), title, x(), Axis::linear("MiB"), memory, true);
}

fn latency(report: &Report<'_>, add: &mut impl FnMut(String, String, Axis, Axis, Vec<Series>, bool)) {
    let quantiles = ["p50", "p99", "p99.9", "max"];
    let measured = || report.measurements.iter().filter(|one| one.experiment == "latency" && one.is_measured());
    for bytes in distinct(measured().map(|one| one.bytes)) {
        for operation in ["look-up", "insert", "remove"] {
            let mut all: Vec<Series> = Vec::new();
            for one in measured().filter(|one| one.bytes == bytes) {
                let Some((of, quantile)) = one.operation.split_once(", ") else { continue };
                let at = quantiles.iter().position(|name| *name == quantile);
                if let (true, Some(at)) = (of == operation, at) {
                    push(&mut all, &one.peer, is_ours(&one.peer), (at as f64, one.median));
                }
            }
            let names =
                Box::new(move |at: i64| quantiles.get(at as usize).map_or_else(String::new, ToString::to_string));
            let x = Axis { label: "percentile of calls", log: false, names: Some(names) };
            let title = format!("Latency of single calls: {operation}, table of {}", Bytes(bytes));
            add(format!("latency-{bytes}-{operation}.svg"), title, x, Axis::log("nanoseconds"), all, true);
        }
    }
}

/// A line for each filter, in the order of the registry.
fn series<'a>(points: impl Iterator<Item = (&'a Measurement, f64, f64)>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (one, x, y) in points {
        push(&mut all, &one.peer, is_ours(&one.peer), (x, y));
    }
    all.sort_by_key(|series| tables::rank(&series.name));
    all
}

fn push(all: &mut Vec<Series>, name: &str, ours: bool, point: (f64, f64)) {
    match all.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push(point),
        None => all.push(Series { name: name.to_string(), points: vec![point], ours }),
    }
}

fn is_ours(peer: &str) -> bool {
    peer.starts_with(peers::koel::SINGLE)
}

fn distinct(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = numbers.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn most_common(numbers: impl Iterator<Item = u32>) -> Option<u32> {
    let all: Vec<u32> = numbers.collect();
    let count = |load: u32| all.iter().filter(|other| **other == load).count();
    // Of equals the highest up to 90%, which all filters take.
    all.iter().copied().max_by_key(|load| (count(*load), *load <= 90, *load))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

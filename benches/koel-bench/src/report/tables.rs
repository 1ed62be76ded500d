//! Tables in Markdown.

use crate::{
    measurement::{LIMIT_ONE, LIMIT_TWO, Measurement, Unit},
    peers,
};

/// What the cells of throughput say, once for the whole report.
pub const LEGEND: &str = "Cells: median of the rounds in million operations per second, ± half the distance between the quartiles; then in brackets how many times the \
                          best filter that is not koel, in the same case; how many times the best that deletes, if that is another one; and how many times the \
                          one-read limit of the memory, where it was measured.";

/// One table for each section, a row for each filter, a column for each load.
pub fn by_load(measurements: &[&Measurement], section: impl Fn(&Measurement) -> String) -> String {
    // A refusal is noted once, without a share of hits: it is shown in a list below.
    let (refused, shown): (Vec<&Measurement>, Vec<_>) =
        measurements.iter().copied().partition(|one| !one.is_measured() && one.note.is_some());
    let mut text = grid(&shown, section, |one| format!("{}%", one.load));
    for one in &refused {
        let note = one.note.as_deref().unwrap_or_default();
        text += &format!("- {}, {}, {}%: {note}\n", one.peer, crate::options::Bytes(one.bytes), one.load);
    }
    if !refused.is_empty() {
        text.push('\n');
    }
    text
}

/// One table for each section, a row for each filter, and columns in the order of their first record.
pub fn grid(
    measurements: &[&Measurement],
    section: impl Fn(&Measurement) -> String,
    column: impl Fn(&Measurement) -> String,
) -> String {
    let mut sorted = measurements.to_vec();
    sorted.sort_by_key(|one| rank(&one.peer));
    rows_and_columns(&sorted, section, |one| one.peer.clone(), column)
}

/// The place of a filter in the registry.
pub fn place(peer: &str) -> Option<usize> {
    peers::all().iter().position(|spec| spec.name == peer)
}

/// Whether a name is that of a limit.
pub fn is_limit(name: &str) -> bool {
    name == LIMIT_ONE || name == LIMIT_TWO
}

/// Whether it is that of the first.
pub fn is_first_limit(name: &str) -> bool {
    name == LIMIT_ONE
}

/// Filters in the order of their registry, what they do not know after them, the limits last.
pub fn rank(peer: &str) -> usize {
    match place(peer) {
        Some(at) => at * 10,
        None if peer == LIMIT_ONE => 1_000_000,
        None if peer == LIMIT_TWO => 1_000_001,
        // Variants of koel go with it.
        None if peer.starts_with(peers::koel::SINGLE) => 11,
        None => 100_000,
    }
}

/// One table for each section.
pub fn rows_and_columns(
    measurements: &[&Measurement],
    section: impl Fn(&Measurement) -> String,
    row: impl Fn(&Measurement) -> String,
    column: impl Fn(&Measurement) -> String,
) -> String {
    let mut text = String::new();
    // Sections and columns in the order in which they were measured, whatever the order of rows.
    for title in distinct(measurements, &section) {
        let here: Vec<&Measurement> = measurements.iter().copied().filter(|one| section(one) == title).collect();
        let mut columns = distinct(&here, &column);
        let percent = |text: &String| text.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
        if columns.iter().all(|column| percent(column).is_some()) {
            columns.sort_by_key(percent);
        }
        if !title.is_empty() {
            text += &format!("**{title}**\n\n");
        }
        text += &format!(
            "| |{}|\n|---|{}\n",
            columns.iter().map(|column| format!(" {column} ")).collect::<Vec<_>>().join("|"),
            "---:|".repeat(columns.len())
        );
        for name in distinct(&here, &row) {
            text += &format!("| {name} |");
            for title in &columns {
                let found = here.iter().find(|one| row(one) == name && column(one) == *title);
                text += &format!(" {} |", found.map_or_else(String::new, |one| cell(one)));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

fn distinct(measurements: &[&Measurement], of: impl Fn(&Measurement) -> String) -> Vec<String> {
    let mut all = Vec::new();
    for one in measurements {
        let name = of(one);
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// A figure with its spread and its ratios.
pub fn cell(one: &Measurement) -> String {
    if !one.is_measured() {
        return one.note.clone().unwrap_or_else(|| "-".to_string());
    }
    let mut text = figure(one.median, one.unit);
    if one.samples.len() > 1 && one.median != 0.0 {
        text += &format!(" ±{:.0}%", 50.0 * (one.upper - one.lower) / one.median);
    }
    let deleting = one.to_best_deleting.filter(|ratio| Some(*ratio) != one.to_best_peer);
    let ratios = [(one.to_best_peer, "best"), (deleting, "deleting"), (one.to_limit, "limit")];
    let ratios: Vec<String> =
        ratios.iter().filter_map(|(ratio, of)| ratio.map(|ratio| format!("{ratio:.2} {of}"))).collect();
    // A limit beside itself says nothing.
    if !ratios.is_empty() && !one.is_limit() {
        text += &format!(" ({})", ratios.join(", "));
    }
    if let Some(note) = &one.note {
        text += &format!(" [{note}]");
    }
    text
}

/// A number with as many digits as it deserves.
pub fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Mops if value >= 100.0 => format!("{value:.0}"),
        Unit::Mops if value >= 10.0 => format!("{value:.1}"),
        Unit::Mops => format!("{value:.2}"),
        Unit::Nanoseconds => format!("{value:.0} ns"),
        Unit::Share if value == 0.0 => "0".to_string(),
        Unit::Share => format!("{value:.2e}"),
        Unit::PerKey if value == 0.0 => "0".to_string(),
        Unit::PerKey if value < 0.001 => format!("{value:.1e}"),
        Unit::PerKey => format!("{value:.4}"),
        Unit::BitsPerKey => format!("{value:.2}"),
        Unit::Gigabytes => format!("{value:.2} GB/s"),
        Unit::Bytes => format!("{:.1} MiB", value / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_row_for_each_filter() {
        let of = |peer: &str, load, figure| {
            Measurement::new("lookups", "look-up", peer)
                .table(1 << 20, load)
                .hits(0)
                .samples(vec![figure, figure * 1.1])
        };
        let mut all =
            vec![of("sbbf-rs", 90, 100.0), of("sbbf-rs", 50, 120.0), of("koel", 50, 60.0), of(LIMIT_ONE, 50, 240.0)];
        all.push(Measurement::new("lookups", "look-up", "cuckoofilter").table(1 << 20, 95).note("refused at 94.0%"));
        crate::measurement::compare(&mut all, &["koel"], &[]);
        let text = by_load(&all.iter().collect::<Vec<_>>(), |_| "1 MiB".to_string());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "**1 MiB**");
        assert_eq!(lines[2], "| | 50% | 90% |");
        assert_eq!(lines[4], "| koel | 63.0 ±2% (0.50 best, 0.25 limit) |  |");
        assert!(lines[5].starts_with("| sbbf-rs | 126 ±2% (1.00 best, 0.50 limit) | 105 "), "{}", lines[5]);
        assert_eq!(lines[6], "| limit, 1 read | 252 ±2% |  |");
        assert!(text.contains("- cuckoofilter, 1 MiB, 95%: refused at 94.0%"));
    }
}

//! What comes out: a report in Markdown, all records as JSON, and plots.

mod chart;
mod plots;
pub mod tables;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    experiments,
    machine::{HugePageShares, Machine},
    measurement::{LIMIT_ONE, LIMIT_TWO, Measurement},
    options::{Bytes, Settings},
    peers,
    targets::{self, Outcome},
};

/// Says which records a column of the summary shows.
type Accept = Box<dyn Fn(&&Measurement) -> bool>;

/// Everything that a run found.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// Where it ran.
    pub machine: Machine,
    /// What was asked for.
    pub settings: &'a Settings,
    /// How long it took.
    pub seconds: f64,
    /// How long each experiment took, in seconds.
    pub durations: Vec<(&'static str, f64)>,
    /// What huge pages there were, if they were asked for and the system tells.
    pub pages: Option<HugePageShares>,
    /// All figures.
    pub measurements: &'a [Measurement],
    /// The figures to reach.
    pub targets: Vec<Outcome>,
    /// Keys that a filter did not find though they were in.
    pub missed: &'a [(String, String, u64)],
}

impl Report<'_> {
    /// The whole report in Markdown; plots are named as files beside it.
    pub fn markdown(&self, plots: &[(String, String)]) -> String {
        let mut text = format!("# Koel and its peers\n\n{}\n{}", self.head(), self.summary());
        text += &self.answers();
        text += &targets::markdown(&self.targets);
        text += "\n";
        text += tables::LEGEND;
        text += "\n\n";
        for experiment in experiments::chosen(self.settings) {
            text += &format!("## {}\n\n{}\n\n", experiment.title, experiment.explanation);
            for (file, title) in plots.iter().filter(|(file, _)| file.starts_with(experiment.name)) {
                text += &format!("![{title}]({file})\n\n");
            }
            let own: Vec<&Measurement> = self.of(experiment.name).collect();
            text += &(experiment.render)(&own);
        }
        text += "## What each filter is, and what it was given\n\n";
        for spec in peers::chosen(self.settings) {
            text += &format!("- **{}**: {}\n", spec.name, spec.note);
        }
        text
    }

    /// The part for a terminal.
    pub fn brief(&self) -> String {
        format!("{}\n{}{}{}", self.head(), self.summary(), self.answers(), targets::markdown(&self.targets))
    }

    fn of(&self, experiment: &str) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(move |one| one.experiment == experiment)
    }

    fn head(&self) -> String {
        let machine = &self.machine;
        let pages = match (self.settings.huge_pages, self.pages) {
            (false, _) => "small pages, as asked for".to_string(),
            (true, Some(HugePageShares { koel, heap })) => format!(
                "huge pages asked for by all: {:.0}% of koel's table are in them, {:.0}% of one from the heap, where the peers' are",
                100.0 * koel,
                100.0 * heap
            ),
            (true, None) => "huge pages asked for; the system does not tell whether they were given".to_string(),
        };
        format!(
            "- {} ({} threads), {}, caches {}, memory {}\n- {pages}; system setting {}\n- koel's batches on {}; {} rounds; {} seconds in all\n",
            machine.processor,
            machine.cores,
            machine.system,
            machine.caches,
            machine.memory,
            machine.huge_pages,
            machine.backend,
            self.settings.rounds,
            self.seconds.round(),
        )
    }

    /// One row for each filter, the figures that most people look for.
    fn summary(&self) -> String {
        let sizes = || self.settings.sizes.iter().copied();
        let cached = sizes().filter(|bytes| *bytes <= 2 << 20).max();
        let in_memory = sizes().filter(|bytes| *bytes <= 64 << 20).max().or(sizes().max());
        let mut shown: Vec<u64> = cached.into_iter().chain(in_memory).collect();
        shown.dedup();
        let mut columns: Vec<(String, Accept)> = Vec::new();
        for bytes in shown {
            // Very large tables are measured at one load alone.
            let loads = self.settings.loads_for(bytes);
            let usual = self.settings.usual_load();
            let load = if loads.contains(&usual) { usual } else { loads[0] };
            for (hits, what) in [(0, "absent"), (100, "present")] {
                let is = move |one: &&Measurement| {
                    one.experiment == "lookups" && (one.bytes, one.load, one.hits) == (bytes, load, Some(hits))
                };
                columns.push((format!("{what}, {} at {load}%", Bytes(bytes)), Box::new(is)));
            }
            let is = move |one: &&Measurement| one.operation == "insert, 0 to 95%" && one.bytes == bytes;
            columns.push((format!("insert to 95%, {}", Bytes(bytes)), Box::new(is)));
            let is = move |one: &&Measurement| one.experiment == "removes" && (one.bytes, one.load) == (bytes, load);
            columns.push((format!("remove, {} at {load}%", Bytes(bytes)), Box::new(is)));
        }
        let of_rates = |operation: &'static str| {
            move |one: &&Measurement| one.experiment == "false-positives" && one.operation == operation
        };
        columns.push(("false positives".to_string(), Box::new(of_rates("measured"))));
        columns.push(("bits per key".to_string(), Box::new(of_rates("bits per key"))));

        let names: Vec<&str> =
            peers::chosen(self.settings).iter().map(|spec| spec.name).chain([LIMIT_ONE, LIMIT_TWO]).collect();
        // The false positives of koel are recorded by layout.
        let of_peer = |one: &Measurement, name: &str| {
            one.peer == name || (one.peer == "koel 4 x 15" && [peers::koel::SINGLE, peers::koel::BATCH].contains(&name))
        };
        let measured = |is: &dyn Fn(&&Measurement) -> bool, name: &str| {
            self.measurements.iter().find(|one| is(one) && of_peer(one, name)).map(|one| {
                if one.is_measured() {
                    tables::figure(one.median, one.unit)
                } else {
                    one.note.clone().unwrap_or_default()
                }
            })
        };
        columns.retain(|(_, is)| self.measurements.iter().any(|one| is(&one)));
        if columns.is_empty() {
            return String::new();
        }
        let mut text = "## Summary\n\nMillion operations per second of one thread, medians.\n\n".to_string();
        let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
        text += &format!("| {:width$} |", "");
        columns.iter().for_each(|(title, _)| text += &format!(" {title} |"));
        text += &format!("\n|{}|", "-".repeat(width + 2));
        columns.iter().for_each(|(title, _)| text += &format!("{}:|", "-".repeat(title.len() + 1)));
        text.push('\n');
        for name in names {
            let cells: Vec<String> = columns.iter().map(|(_, is)| measured(is, name).unwrap_or_default()).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            text += &format!("| {name:width$} |");
            for (cell, (title, _)) in cells.iter().zip(&columns) {
                let width = title.len();
                text += &format!(" {cell:>width$} |");
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    fn answers(&self) -> String {
        if self.missed.is_empty() {
            return "Every filter found every key that was in, in every sample.\n\n".to_string();
        }
        let mut text = "**Wrong answers: keys that were in and were not found**\n\n".to_string();
        for (peer, place, count) in self.missed {
            text += &format!("- {peer}, {place}: {count}\n");
        }
        text.push('\n');
        text
    }

    /// Writes what the settings ask for; the files.
    ///
    /// # Errors
    ///
    /// If a file cannot be written; the message names it.
    pub fn write(&self) -> io::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        let json = || serde_json::to_vec_pretty(self).map_err(io::Error::from);
        if let Some(file) = &self.settings.json {
            replace(file, &json()?)?;
            written.push(file.clone());
        }
        if let Some(dir) = &self.settings.out {
            fs::create_dir_all(dir).map_err(|error| named(dir, &error))?;
            let plots = plots::all(self);
            for (name, _, svg) in &plots {
                replace(&dir.join(name), svg.as_bytes())?;
                written.push(dir.join(name));
            }
            let titles: Vec<(String, String)> = plots.into_iter().map(|(name, title, _)| (name, title)).collect();
            replace(&dir.join("report.json"), &json()?)?;
            replace(&dir.join("report.md"), self.markdown(&titles).as_bytes())?;
            written.extend(["report.json", "report.md"].map(|name| dir.join(name)));
        }
        Ok(written)
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Writes a file whole or not at all: whoever interrupts the run finds the old one or the new one.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    fs::write(&temporary, content).map_err(|error| named(&temporary, &error))?;
    fs::rename(&temporary, file).map_err(|error| named(file, &error))
}

/// Whether the files asked for could be written, before hours are spent on what goes into them.
///
/// # Errors
///
/// What is in the way.
pub fn check_writable(settings: &Settings) -> io::Result<()> {
    if let Some(dir) = &settings.out {
        fs::create_dir_all(dir).map_err(|error| named(dir, &error))?;
        let probe = dir.join("report.md.new");
        fs::write(&probe, "").map_err(|error| named(&probe, &error))?;
        fs::remove_file(&probe)?;
    }
    if let Some(file) = &settings.json {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() || file.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{}: no such directory, or itself one", file.display()),
            ));
        }
    }
    Ok(())
}

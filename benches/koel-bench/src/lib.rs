//! The laboratory: measures koel against other filters and against the memory of the machine. README.md says how to run it, what each
//! experiment measures, and how to add a filter or an experiment.
//!
//! ```text
//! options      the command line, checked
//! experiments  one file for each question; they share `lab`
//! peers        one file for each family of filters
//! limit        the speed of the memory (the only unsafe code)
//! keys         hashes from numbers, look-ups with known answers
//! measurement  the record of a figure, statistics
//! targets      the figures to reach, computed from the records
//! report       Markdown, JSON and plots
//! ```

pub mod experiments;
pub mod keys;
pub mod lab;
pub mod limit;
pub mod machine;
pub mod measurement;
pub mod options;
pub mod peers;
pub mod report;
pub mod targets;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use lab::Lab;
use machine::Machine;
use options::Settings;
use report::Report;

/// Runs the experiments, prints the summary and writes what was asked for. Whether every filter found what was in.
///
/// # Errors
///
/// If a file cannot be written; the message names it.
pub fn run(settings: &Settings) -> Result<bool, String> {
    report::check_writable(settings).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let steps = experiments::chosen(settings).map(|experiment| (experiment.steps)(settings)).sum();
    let progress = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{elapsed} [{bar:30}] {percent}%, {eta} to go: {wide_msg}");
    progress.set_style(style.expect("a template").progress_chars("=> "));
    progress.enable_steady_tick(Duration::from_millis(500));

    let pages =
        settings.huge_pages.then(|| machine::huge_page_shares(settings.sizes.last().copied().unwrap_or(0))).flatten();
    let mut lab = Lab::new(settings, progress.clone());
    let mut durations = Vec::new();
    for experiment in experiments::chosen(settings) {
        let start = Instant::now();
        (experiment.run)(&mut lab);
        durations.push((experiment.name, start.elapsed().as_secs_f64()));
    }
    progress.finish_and_clear();

    let Lab { mut measurements, missed, .. } = lab;
    let names = |accept: fn(&peers::Spec) -> bool| -> Vec<&'static str> {
        peers::all().iter().filter(|spec| accept(spec)).map(|spec| spec.name).collect()
    };
    let ours = [names(|spec| spec.ours), experiments::own_names()].concat();
    measurement::compare(&mut measurements, &ours, &names(|spec| spec.removes));
    let report = Report {
        machine: Machine::this(),
        settings,
        seconds: start.elapsed().as_secs_f64(),
        durations,
        pages,
        targets: targets::evaluate(&measurements, settings),
        measurements: &measurements,
        missed: &missed,
    };
    println!("{}", report.brief());
    for file in report.write().map_err(|error| error.to_string())? {
        println!("wrote {}", file.display());
    }
    Ok(missed.is_empty())
}

//! Inserts by load, from an empty table to 95%.

use std::time::Duration;

use super::Experiment;
use crate::{
    lab::{Lab, Subject},
    measurement::{Measurement, mops},
    options::{Bytes, Settings},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "inserts",
    title: "Inserts",
    explanation: "Million inserts per second of one thread into a table that fills up, in steps of 5% of its slots, and in all. Each round fills a \
                  new filter, whose pages are written beforehand. A refused insert is never counted; where a filter refuses, its column ends. \
                  Filters without slots take the same keys.",
    steps,
    run,
    render,
};

/// The records of the whole way.
pub(crate) const TO_THE_END: &str = "insert, 0 to 95%";
/// The records of each step.
pub(crate) const STEP: &str = "insert, last 5%";
/// The highest load, and what most filters take.
pub(crate) const END: u32 = 95;
const STEP_PERCENT: u32 = 5;

/// Filling a large table is slow: fewer rounds.
fn rounds(settings: &Settings, bytes: u64) -> u64 {
    if bytes > 8 << 20 { settings.rounds.min(3) } else { settings.rounds }
}

fn steps(settings: &Settings) -> u64 {
    settings.refillable_sizes().iter().map(|bytes| rounds(settings, *bytes) * (1 + bytes / (1 << 20))).sum()
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.refillable_sizes() {
        let specs: Vec<_> = lab.specs(bytes).into_iter().filter(|spec| !spec.fixed).collect();
        let steps = (END / STEP_PERCENT) as usize;
        let mut rates = vec![vec![Vec::new(); steps + 1]; specs.len()];
        let mut refusals = vec![None; specs.len()];
        for round in 0..rounds(lab.settings, bytes) {
            for (number, spec) in specs.iter().enumerate() {
                lab.say(format!("inserts, {}, round {}: {}", Bytes(bytes), round + 1, spec.name));
                if let Err(refusal) = fill(lab, bytes, *spec, &mut rates[number]) {
                    refusals[number] = Some(refusal);
                }
            }
            for _ in 0..=bytes / (1 << 20) {
                lab.step();
            }
        }
        for ((spec, rates), refusal) in specs.iter().zip(rates).zip(refusals) {
            for (step, samples) in rates.into_iter().enumerate() {
                let (operation, load) =
                    if step == steps { (TO_THE_END, END) } else { (STEP, (step as u32 + 1) * STEP_PERCENT) };
                let mut measurement = Measurement::new("inserts", operation, spec.name).table(bytes, load);
                if samples.is_empty() {
                    measurement.note = refusal.clone();
                }
                lab.record(measurement.samples(samples));
            }
        }
    }
}

/// Fills one filter and notes the rate of each step, and of the whole, as far as it came.
fn fill(lab: &Lab<'_>, bytes: u64, spec: crate::peers::Spec, rates: &mut [Vec<f64>]) -> Result<(), String> {
    let plan = lab.plan(bytes, END);
    let mut subject = Subject::empty(spec, &plan)?;
    let mut all = Duration::ZERO;
    let (whole, steps) = rates.split_last_mut().expect("a place for the whole");
    for (step, rates) in steps.iter_mut().enumerate() {
        let plan = lab.plan(bytes, (step as u32 + 1) * STEP_PERCENT);
        let before = subject.keys;
        let taken = subject.fill(plan.keys);
        subject.is_full_as_planned(&plan)?;
        rates.push(mops(plan.keys - before, taken));
        all += taken;
    }
    whole.push(mops(plan.keys, all));
    Ok(())
}

fn render(measurements: &[&Measurement]) -> String {
    let (whole, steps): (Vec<_>, Vec<_>) = measurements.iter().partition(|one| one.operation == TO_THE_END);
    let mut text =
        tables::grid(&whole, |_| "From empty to 95%, by table size".to_string(), |one| Bytes(one.bytes).to_string());
    // Every fourth step is enough to read; all are in the JSON and the plot.
    let shown: Vec<_> = steps.into_iter().filter(|one| [50, 70, 80, 85, 90, 95].contains(&one.load)).collect();
    text += &tables::by_load(&shown, |one| format!("{}, the 5% of the slots up to the load", Bytes(one.bytes)));
    text
}

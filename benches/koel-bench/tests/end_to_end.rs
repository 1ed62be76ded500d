//! Runs everything on tiny tables: every experiment gives figures, every filter answers right, and all files are there.

use clap::Parser;
use koel_bench::{experiments, options::Args, peers, run};

fn settings(args: &[&str]) -> koel_bench::options::Settings {
    Args::try_parse_from([&["koel-bench", "--tiny"], args].concat()).unwrap().settings().unwrap()
}

#[test]
fn everything_runs_on_tiny_tables() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("report");
    let json = dir.path().join("all.json");
    let settings = settings(&["--threads", "1,2", "--out", out.to_str().unwrap(), "--json", json.to_str().unwrap()]);
    assert!(run(&settings).unwrap(), "a filter missed a key");

    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    let text = std::fs::read_to_string(out.join("report.json")).unwrap();
    assert_eq!(text.len(), std::fs::read_to_string(json).unwrap().len());
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let measurements = all["measurements"].as_array().unwrap();
    for experiment in experiments::ALL {
        assert!(report.contains(&format!("## {}", experiment.title)), "{}", experiment.name);
        let of = |one: &&serde_json::Value| one["experiment"] == experiment.name && one["median"].is_number();
        assert!(measurements.iter().any(|one| of(&one)), "no figures of {}", experiment.name);
    }
    for spec in peers::all() {
        let looked_up = |one: &serde_json::Value| {
            one["experiment"] == "lookups"
                && one["peer"] == spec.name
                && one["load"] == 90
                && one["median"].as_f64() > Some(0.0)
        };
        assert!(measurements.iter().any(looked_up), "no look-ups of {}", spec.name);
    }
    // Each figure with its ratios, and the figures to reach.
    let koel = |one: &&serde_json::Value| one["experiment"] == "lookups" && one["peer"] == "koel";
    let koel = measurements.iter().find(koel).unwrap();
    assert!(koel["to_best_peer"].is_number() && koel["to_limit"].is_number(), "{koel}");
    assert!(!all["targets"].as_array().unwrap().is_empty());
    assert!(all["missed"].as_array().unwrap().is_empty());

    // Every plot that the report shows is a file, and the other way round.
    let mut plots = 0;
    for entry in std::fs::read_dir(&out).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".new"), "{name}");
        if name.ends_with(".svg") {
            let svg = std::fs::read_to_string(out.join(&name)).unwrap();
            assert!(svg.starts_with("<svg") && svg.contains("polyline") || name.starts_with("false"), "{name}");
            assert!(report.contains(&format!("({name})")), "{name} is not in the report");
            plots += 1;
        }
    }
    assert!(plots >= 12, "{plots} plots");
}

#[test]
fn one_experiment_of_one_filter() {
    let settings = settings(&["--ops", "latency", "--peers", "qfilter", "--sizes", "64KiB"]);
    assert!(run(&settings).unwrap());
}

#[test]
fn what_cannot_be_written_is_said_beforehand() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("out");
    let error = run(&settings(&["--out", below.to_str().unwrap()])).unwrap_err();
    assert!(error.contains("file/out"), "{error}");
    let json = dir.path().join("missing/report.json");
    let error = run(&settings(&["--json", json.to_str().unwrap()])).unwrap_err();
    assert!(error.contains("report.json"), "{error}");
}

//! The command line, checked before anything runs.

use std::{fmt, num::NonZeroUsize, path::PathBuf, thread};

use clap::Parser;

use crate::{experiments, peers};

/// Measures koel against other filters and against the memory of this machine.
///
/// Without options: about a minute, a summary on the standard output. Every table is measured in interleaved rounds on the same keys, every figure
/// is the median of the rounds, and the speed of the memory is measured beside it.
#[derive(Debug, Parser)]
#[command(name = "koel-bench", after_help = AFTER_HELP)]
pub struct Args {
    /// About one minute: tables of 1 MiB with all peers, look-ups in 64 MiB with a few [this is the default]
    #[arg(long, conflicts_with_all = ["full", "tiny"])]
    quick: bool,

    /// Half an hour to an hour on two cores, and up to 15 GiB of memory: tables from 256 KiB to 1 GiB, more rounds
    #[arg(long, conflicts_with = "tiny")]
    full: bool,

    /// A few seconds: whether everything works; the figures mean nothing
    #[arg(long)]
    tiny: bool,

    /// Experiments to run, by name, separated by commas [default: all, see below]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    ops: Vec<String>,

    /// Sizes of tables, bytes with a unit such as 64KiB, 1MiB or 1GiB; powers of two, as most peers have no others
    /// [default: 1MiB,64MiB; --full: 256KiB,1MiB,4MiB,16MiB,64MiB,1GiB; experiments with slow fills skip the largest]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    sizes: Vec<u64>,

    /// Loads: percent of the slots that are taken, 1 to 95 [default: 50,75,90,95; fewer in the largest tables]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=95))]
    loads: Vec<u32>,

    /// Numbers of threads, 1 to 64 [default: 1, 2, 4 and so on up to the number of cores]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Vec<u16>,

    /// Filters to measure, by name [default: all, see below; on large tables only a few unless named]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Vec<String>,

    /// How often each figure is measured: the number of interleaved rounds, 1 to 1000 [default: 5; --full: 7]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Ordinary pages of memory instead of huge ones, for all filters and the limit
    #[arg(long)]
    small_pages: bool,

    /// File for all measurements as JSON, overwritten [default: none]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Directory for report.md, report.json and the plots as SVG, created if need be [default: none]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Named here so that `--help` shows what `--ops` and `--peers` take; a test keeps them right.
const AFTER_HELP: &str = "\
Experiments:
  lookups          look-ups by table size, load and share of hits, and the limit of the memory
  backends         batches on each backend that this processor has, against single calls
  keys             look-ups of random, sequential and Zipf-distributed keys
  inserts          inserts by load, to 95%
  removes          removals by load
  threads          read only, 95/5, 50/50 with removals, insert only, by number of threads
  churn            look-ups while another thread inserts and removes, against idle
  latency          percentiles of single calls
  relocations      what inserts cost inside koel: relocations, searches, retries, failures, and what a reader beside them reads again
  false-positives  measured against stated rates, and bits per key
  growth           inserts, look-ups, latency and memory of a filter that doubles, against one of its last size
  snapshots        a filter as bytes and back, look-ups in the bytes and beside snapshots, the gate, and sets that are known
  choosing         koel's own filters side by side: memory, rates, speed, removals, and what happens when they are full

Peers:
  koel, koel batch, koel bloom batch, koel blocked batch, atomic-cuckoo-filter, bloom-lib, cuckoofilter, scalable_cuckoo_filter, RwLock<bloom-lib>,
  qfilter, fastbloom, fastbloom atomic, sbbf-rs, xorf BinaryFuse16, dashmap

Exit codes: 0 if all went well, 1 if a filter missed a key that was in, 2 for any other error. Ctrl-C ends the run and leaves no half-written file.";

/// How long the run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Seconds.
    Tiny,
    /// A minute.
    Quick,
    /// Twenty minutes.
    Full,
}

/// What to run: the options with all defaults filled in.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Settings {
    /// How long the run may take.
    pub mode: Mode,
    /// Names of experiments.
    pub experiments: Vec<&'static str>,
    /// Bytes of tables, ascending.
    pub sizes: Vec<u64>,
    /// Whether the sizes were named: then nothing is skipped for the time it takes.
    pub sizes_chosen: bool,
    /// Percent of slots, ascending.
    pub loads: Vec<u32>,
    /// Whether the loads were named.
    pub loads_chosen: bool,
    /// Numbers of threads, ascending.
    pub threads: Vec<usize>,
    /// Names of filters.
    pub peers: Vec<&'static str>,
    /// Whether the filters were named.
    pub peers_chosen: bool,
    /// Tables above are measured only with filters that fill fast enough.
    pub large_bytes: u64,
    /// Interleaved rounds.
    pub rounds: u64,
    /// Look-ups of a sample.
    pub look_ups: usize,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where everything goes.
    pub out: Option<PathBuf>,
}

impl Args {
    /// The options with defaults filled in.
    ///
    /// # Errors
    ///
    /// A sentence that names the value that is wrong and those that would be right.
    pub fn settings(self) -> Result<Settings, String> {
        let mode = match (self.tiny, self.full) {
            (true, _) => Mode::Tiny,
            (_, true) => Mode::Full,
            _ => Mode::Quick,
        };
        let (sizes, loads): (&[u64], &[u32]) = match mode {
            Mode::Tiny => (&[64 << 10], &[50, 90]),
            Mode::Quick => (&[1 << 20, 64 << 20], &[50, 75, 90, 95]),
            Mode::Full => (&[256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 1 << 30], &[50, 75, 90, 95]),
        };
        let all_experiments: Vec<_> = experiments::ALL.iter().map(|experiment| experiment.name).collect();
        let all_peers: Vec<_> = peers::all().iter().map(|spec| spec.name).collect();
        let settings = Settings {
            mode,
            experiments: named("experiment", &self.ops, &all_experiments)?,
            sizes_chosen: !self.sizes.is_empty(),
            sizes: sorted(self.sizes, sizes),
            loads_chosen: !self.loads.is_empty(),
            loads: sorted(self.loads, loads),
            threads: sorted(self.threads.into_iter().map(usize::from).collect(), &default_threads()),
            peers_chosen: !self.peers.is_empty(),
            peers: named("peer", &self.peers, &all_peers)?,
            large_bytes: if mode == Mode::Full { 128 << 20 } else { 8 << 20 },
            rounds: u64::from(self.rounds.unwrap_or(match mode {
                Mode::Tiny => 1,
                Mode::Quick => 5,
                Mode::Full => 7,
            })),
            look_ups: match mode {
                Mode::Tiny => 1 << 12,
                Mode::Quick => 1 << 19,
                Mode::Full => 1 << 20,
            },
            huge_pages: !self.small_pages,
            json: self.json,
            out: self.out,
        };
        settings.check()?;
        Ok(settings)
    }
}

impl Settings {
    fn check(&self) -> Result<(), String> {
        let needed = self.memory_needed();
        match memory_available() {
            Some(available) if needed > available => Err(format!(
                "this run needs about {} of memory, of which {} are available: name smaller --sizes or fewer --peers",
                Bytes(needed),
                Bytes(available)
            )),
            _ => Ok(()),
        }
    }

    /// About how much memory the look-ups take, which have all filters side by side.
    fn memory_needed(&self) -> u64 {
        let at = |bytes: &u64| -> u64 {
            let filters = peers::chosen(self).into_iter().filter(|spec| spec.affordable(self, *bytes)).map(|spec| {
                // The exact set stores whole hashes, a fixed filter sees all keys at once.
                if spec.name == "dashmap" || spec.fixed { 12 } else { 1 }
            });
            bytes * (filters.sum::<u64>() + 2)
        };
        // Several threads' inserts are prepared as hashes: eight bytes for each key of two.
        let prepared = self.two_sizes().last().map_or(0, |bytes| bytes * 4);
        self.sizes.iter().map(at).max().unwrap_or(0).max(prepared) + (64 << 20)
    }

    /// The rounds for a table of this size: fewer where each takes long.
    pub fn rounds_for(&self, bytes: u64) -> u64 {
        let most = if self.mode == Mode::Quick { 3 } else { 5 };
        if bytes > 8 << 20 { self.rounds.min(most) } else { self.rounds }
    }

    /// The sizes for experiments that fill tables again and again.
    pub fn refillable_sizes(&self) -> Vec<u64> {
        let fits = |bytes: &u64| self.sizes_chosen || *bytes <= self.large_bytes;
        self.sizes.iter().copied().filter(fits).collect()
    }

    /// Of these, the largest that is in the second-level cache, and the largest of all: for experiments with many cases.
    pub fn two_sizes(&self) -> Vec<u64> {
        let sizes = self.refillable_sizes();
        let cached = sizes.iter().copied().filter(|bytes| *bytes <= 2 << 20).max();
        let mut two: Vec<u64> = cached.into_iter().chain(sizes.last().copied()).collect();
        two.dedup();
        two
    }

    /// The highest load up to 90%, or the lowest there is: for experiments at one load.
    pub fn usual_load(&self) -> u32 {
        self.loads.iter().copied().filter(|load| *load <= 90).max().unwrap_or(self.loads[0])
    }

    /// The loads to measure a table of this size at.
    pub fn loads_for(&self, bytes: u64) -> Vec<u32> {
        if self.loads_chosen || bytes <= self.large_bytes {
            return self.loads.clone();
        }
        if self.mode == Mode::Quick && bytes < 512 << 20 {
            return self.loads.iter().copied().filter(|load| [75, 90].contains(load)).collect();
        }
        self.loads.iter().copied().min_by_key(|load| load.abs_diff(75)).into_iter().collect()
    }
}

/// Numbers in ascending order without repetition, or the default.
fn sorted<T: Ord + Copy>(mut numbers: Vec<T>, default: &[T]) -> Vec<T> {
    if numbers.is_empty() {
        return default.to_vec();
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Those of `all` that are named, in their order; all, if none is.
fn named(what: &str, names: &[String], all: &[&'static str]) -> Result<Vec<&'static str>, String> {
    if let Some(unknown) = names.iter().find(|name| !all.contains(&name.trim())) {
        return Err(format!("unknown {what} '{unknown}': there are {}", all.join(", ")));
    }
    Ok(all.iter().copied().filter(|known| names.is_empty() || names.iter().any(|name| name.trim() == *known)).collect())
}

fn default_threads() -> Vec<usize> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut threads: Vec<usize> = (0..7).map(|power| 1 << power).filter(|threads| *threads <= cores).collect();
    // What two threads do to one another shows on one core, too, if only badly.
    if threads == [1] {
        threads.push(2);
    }
    threads
}

/// Parses a size such as `64MiB`.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "a size is a number and a unit, such as 64MiB".to_string())?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(format!("unknown unit '{unit}': B, KiB, MiB or GiB")),
    };
    let bytes = number.checked_shl(shift).filter(|bytes| bytes >> shift == number).unwrap_or(u64::MAX);
    if !bytes.is_power_of_two() {
        return Err("not a power of two, and most peers have no other sizes".to_string());
    }
    if !(16 << 10..=16 << 30).contains(&bytes) {
        return Err("not from 16KiB to 16GiB".to_string());
    }
    Ok(bytes)
}

/// Bytes in the largest unit that leaves a whole number, or one digit after the point.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, unit) = match self.0 {
            0..0x400 => (0, "B"),
            0x400..0x10_0000 => (10, "KiB"),
            0x10_0000..0x4000_0000 => (20, "MiB"),
            _ => (30, "GiB"),
        };
        if self.0.trailing_zeros() >= shift {
            write!(f, "{} {unit}", self.0 >> shift)
        } else {
            write!(f, "{:.1} {unit}", self.0 as f64 / (1_u64 << shift) as f64)
        }
    }
}

fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn settings(args: &[&str]) -> Result<Settings, String> {
        Args::try_parse_from([&["koel-bench"], args].concat()).map_err(|error| error.to_string())?.settings()
    }

    #[test]
    fn defaults() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.mode, Mode::Quick);
        assert_eq!(settings.sizes, [1 << 20, 64 << 20]);
        assert_eq!(settings.loads, [50, 75, 90, 95]);
        assert_eq!(settings.experiments.len(), experiments::ALL.len());
        assert_eq!(settings.peers.len(), peers::all().len());
        assert!(settings.huge_pages && settings.out.is_none() && settings.json.is_none());
        assert_eq!((settings.loads_for(1 << 20).len(), settings.loads_for(64 << 20)), (4, vec![75, 90]));
        assert_eq!(settings.loads_for(1 << 30), [75]);
        assert!(settings.threads.contains(&1) && settings.threads.contains(&2));
    }

    #[test]
    fn lists_are_sorted() {
        let settings = settings(&[
            "--sizes",
            "1GiB,64kib, 2MiB,64KiB",
            "--loads",
            "90,50",
            "--threads",
            "2,1",
            "--peers",
            "sbbf-rs,koel",
        ])
        .unwrap();
        assert_eq!(settings.sizes, [64 << 10, 2 << 20, 1 << 30]);
        assert_eq!(settings.loads, [50, 90]);
        assert_eq!(settings.threads, [1, 2]);
        assert_eq!(settings.peers, ["koel", "sbbf-rs"]);
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let cases = [
            (["--ops", "lookups,nothing"], "there are lookups"),
            (["--peers", "cuckoo"], "there are koel"),
            (["--sizes", "64"], "16KiB"),
            (["--sizes", "3MiB"], "power of two"),
            (["--sizes", "64QiB"], "KiB"),
            (["--sizes", "MiB"], "such as 64MiB"),
            (["--sizes", "99999999999999999999MiB"], "such as 64MiB"),
            (["--sizes", "99999999999GiB"], "power of two"),
            (["--loads", "96"], "1..=95"),
            (["--loads", "0"], "1..=95"),
            (["--threads", "0"], "1..=64"),
            (["--rounds", "0"], "1..=1000"),
        ];
        for (args, expected) in cases {
            let error = settings(&args).unwrap_err();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
        assert!(settings(&["--quick", "--full"]).is_err());
    }

    #[test]
    fn too_much_memory_is_refused() {
        let mut settings =
            settings(&["--sizes", "16GiB", "--peers", "koel"]).unwrap_or_else(|_| settings(&[]).unwrap());
        settings.sizes = vec![1 << 60];
        assert!(settings.check().unwrap_err().contains("--sizes"));
    }

    #[test]
    fn help_names_everything() {
        let help = Args::command().render_long_help().to_string().replace("\n  ", " ");
        for experiment in experiments::ALL {
            assert!(help.contains(experiment.name), "{}", experiment.name);
        }
        for spec in peers::all() {
            assert!(help.contains(spec.name), "{}", spec.name);
        }
    }

    #[test]
    fn bytes_read_well() {
        let texts = [1, 1 << 10, 1 << 20, 64 << 20, 1 << 30, 1536].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(texts, ["1 B", "1 KiB", "1 MiB", "64 MiB", "1 GiB", "1.5 KiB"]);
    }

    #[test]
    fn two_sizes_are_cached_and_large() {
        assert_eq!(settings(&[]).unwrap().two_sizes(), [1 << 20]);
        assert_eq!(settings(&["--sizes", "64KiB,1MiB,4MiB,16MiB"]).unwrap().two_sizes(), [1 << 20, 16 << 20]);
    }
}

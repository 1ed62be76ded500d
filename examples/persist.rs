//! A filter that outlives its process: built of the keys in a file, saved, opened again as a mapped file, and asked.
//!
//! ```text
//! cargo run --release --features mmap --example persist                        # a million generated keys
//! cargo run --release --features mmap --example persist -- --keys FILE --out FILTER
//! cargo run --release --features mmap --example persist -- --help
//! ```
//!
//! Prints sizes and times. All keys have to be found in the mapped file, or the exit code is 1; it is 2 if something else went wrong.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, error::ErrorKind};
use koel::{CuckooFilter, MappedFilter};

/// What goes wrong here is only ever shown, so any error will do.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Builds a filter of keys, saves it, opens the file as a map, and looks up all keys and as many absent ones.
#[derive(Parser)]
#[command(name = "persist", allow_negative_numbers = true, after_help = AFTER_HELP)]
struct Args {
    /// File of the keys: UTF-8, one key per line; empty and repeated lines are skipped [default: a million generated ids]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Share of absent keys that the filter may let through, above 0 and below 1 (its false-positive rate)
    #[arg(long, value_name = "SHARE", default_value_t = 0.001)]
    rate: f64,

    /// File for the filter, replaced if it is there [default: a temporary one]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
The file holds a snapshot, as docs/format.md describes it; the same keys give the same bytes, in whatever order they are.
Exit codes: 0 if all went well, 1 if a key was not found, 2 for any other error.";

/// Keys if no file is named.
const GENERATED: usize = 1_000_000;

fn main() -> ExitCode {
    match read_args().and_then(|args| run(&args)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The arguments of this process. Prints the help and leaves if asked to.
fn read_args() -> Result<Args> {
    Args::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => error.exit(),
        // The first line says what is wrong; usage and tips follow.
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").into(),
    })
}

/// Builds, saves, opens, asks, and prints; the number of keys that were not found.
fn run(args: &Args) -> Result<usize> {
    let text = args.keys.as_deref().map(read).transpose()?;
    let keys: Vec<String> = match &text {
        Some(text) => text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
        None => (0..GENERATED).map(|number| format!("user:{number:08x}")).collect(),
    };
    if keys.is_empty() {
        return Err("there are no keys".into());
    }
    let directory = tempfile::tempdir()?;
    let file = args.out.clone().unwrap_or_else(|| directory.path().join("filter.koel"));

    let start = Instant::now();
    let builder = CuckooFilter::<str>::builder().false_positive_rate(args.rate);
    // Hashed as the filter hashes keys when it is asked: by its own hasher.
    let hashes: Vec<u64> = keys.iter().map(|key| hash_of(key)).collect();
    let filter = builder.build_from_hashes(&hashes)?;
    let built = start.elapsed();
    let saved = timed(|| filter.save(&file).map_err(|error| format!("cannot save {}: {error}", file.display())));
    saved.0?;
    let size = fs::metadata(&file)?.len();
    let (owned_answers, owned) = timed(|| keys.iter().filter(|key| filter.contains(key.as_str())).count());
    let different = filter.len();
    drop(filter);

    // SAFETY: this process does not change the file, and `save` of another would replace it.
    let (mapped, opened) = timed(|| unsafe { MappedFilter::<str>::open(&file) });
    let mapped = mapped?;
    let (verified, verifying) = timed(|| mapped.verify());
    verified?;
    let (found, asked) = timed(|| keys.iter().filter(|key| mapped.contains(key.as_str())).count());
    // No line of a file has a line break.
    let absent: Vec<String> = keys.iter().map(|key| format!("{key}\n")).collect();
    let (wrong, asked_absent) = timed(|| absent.iter().filter(|key| mapped.contains(key.as_str())).count());

    println!("keys                {:>12}", different);
    println!(
        "file                {:>12} bytes, {:.2} bits per key, {} slots in a bucket",
        size,
        8.0 * size as f64 / different as f64,
        mapped.slots_per_bucket()
    );
    println!("built in            {:>12}", per_key(built, keys.len()));
    println!("saved in            {:>12.2?}", saved.1);
    println!("opened in           {:>12.2?}", opened);
    println!("verified in         {:>12.2?}", verifying);
    println!("asked, in memory    {:>12}", per_key(owned, keys.len()));
    println!("asked, mapped       {:>12}", per_key(asked, keys.len()));
    println!("asked, mapped       {:>12} (absent keys)", per_key(asked_absent, absent.len()));
    println!("found               {found:>12} of {} keys", keys.len());
    println!(
        "false positives     {wrong:>12} of {} absent keys ({:.4}%)",
        absent.len(),
        100.0 * wrong as f64 / absent.len() as f64
    );
    Ok(2 * keys.len() - found - owned_answers)
}

fn read(file: &Path) -> Result<String> {
    Ok(fs::read_to_string(file).map_err(|error| format!("cannot read keys from {}: {error}", file.display()))?)
}

/// As the default hasher of filters does it.
fn hash_of(key: &str) -> u64 {
    std::hash::BuildHasher::hash_one(&koel::Xxh3::new(), key)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// A time in nanoseconds for each key.
fn per_key(time: Duration, keys: usize) -> String {
    format!("{:.1} ns/key", time.as_nanos() as f64 / keys as f64)
}

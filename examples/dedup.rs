//! Passes on each line of a stream once, with memory that is bounded: several threads, and a sliding window of two filters.
//!
//! ```text
//! cargo run --release --example dedup -- FILE > UNIQUE
//! zcat *.gz | cargo run --release --example dedup -- --window 10000000 > UNIQUE
//! cargo run --release --example dedup -- --help
//! ```
//!
//! A line that comes again within the window is dropped. Of threads that meet the same line at once exactly one passes it on: that takes `insert_if_absent`, which cuckoo filters have. (The
//! `insert` of a Bloom filter says that a bit has changed, which several threads may find at once, each of another bit of the same line. With `--filter` others than cuckoo filters do the job
//! as well, under a lock for every 256th of the lines.)

use std::{
    error::Error,
    fs::File,
    hash::BuildHasher,
    io::{self, BufRead, BufReader, BufWriter, Write},
    num::NonZero,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum, error::ErrorKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use koel::{
    BuildError, CuckooFilter, InsertError, MembershipFilter, Xxh3,
    bloom::{BloomFilter, ScalableBloomFilter},
};

/// What goes wrong here is only ever shown, so any error will do.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Passes on each line of a file, or of standard input, once.
#[derive(Parser)]
#[command(name = "dedup", allow_negative_numbers = true, after_help = AFTER_HELP)]
struct Args {
    /// File of the lines [default: standard input]
    file: Option<PathBuf>,

    /// Number of different lines that are remembered at least, the last ones; at most twice as many are
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    window: u64,

    /// Share of new lines that may be dropped because they are taken for others, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0001)]
    rate: f64,

    /// Which filter remembers them
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Kind::Cuckoo)]
    filter: Kind,

    /// Number of threads, 1 to 1024 [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

const AFTER_HELP: &str = "\
Lines are bytes, of any encoding; the last may lack its line break. Of several threads each writes some lines at a time, so that their order may change a little: one thread keeps it.
Progress and statistics go to standard error. Exit codes: 0 if all went well, 2 for any error.";

/// Bytes that are read at a time, and some more up to the end of a line.
const PART: usize = 1 << 16;

fn main() -> ExitCode {
    match read_args().and_then(|args| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
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

/// The filters to choose from.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// A cuckoo filter
    Cuckoo,
    /// A Bloom filter
    Bloom,
    /// A Bloom filter of one cache line for each line of text
    Blocked,
    /// A Bloom filter that grows, from a 64th of the window
    Scalable,
}

/// A filter that lets one of several threads have a hash.
trait Memory: Send + Sync {
    fn filter(&self) -> &dyn MembershipFilter;
    /// Puts a hash in, unless it is in already: whether it was put in.
    fn insert_if_absent(&self, hash: u64) -> std::result::Result<bool, InsertError>;
    fn clear(&mut self);
    /// Bytes in all.
    fn memory_bytes(&self) -> usize {
        self.filter().memory_bytes()
    }
}

impl Memory for CuckooFilter<[u8]> {
    fn filter(&self) -> &dyn MembershipFilter {
        self
    }

    fn insert_if_absent(&self, hash: u64) -> std::result::Result<bool, InsertError> {
        self.insert_if_absent_hash(hash)
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Locks for filters that have no `insert_if_absent`: threads that have the same hash take turns.
struct Locks([Mutex<()>; 256]);

impl Locks {
    fn new() -> Self {
        Self([const { Mutex::new(()) }; 256])
    }

    fn insert_if_absent(&self, filter: &dyn MembershipFilter, hash: u64) -> std::result::Result<bool, InsertError> {
        let _turn = self.0[(hash >> 56) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if filter.contains_hash(hash) { Ok(false) } else { filter.insert_hash(hash).map(|()| true) }
    }
}

/// A filter under such locks.
macro_rules! locked {
    ($($locked:ident of $filter:ident),*) => {
        $(struct $locked($filter<[u8]>, Locks);

        impl Memory for $locked {
            fn filter(&self) -> &dyn MembershipFilter {
                &self.0
            }

            fn insert_if_absent(&self, hash: u64) -> std::result::Result<bool, InsertError> {
                self.1.insert_if_absent(&self.0, hash)
            }

            fn clear(&mut self) {
                self.0.clear();
            }

            fn memory_bytes(&self) -> usize {
                self.0.memory_bytes() + size_of::<Locks>()
            }
        })*
    };
}

locked!(LockedBloom of BloomFilter, LockedScalable of ScalableBloomFilter);

impl Kind {
    fn build(self, capacity: usize, rate: f64) -> std::result::Result<Box<dyn Memory>, BuildError> {
        let bloom = |blocked| {
            let builder = BloomFilter::builder().capacity(capacity).false_positive_rate(rate).blocked(blocked);
            builder.build().map(|filter| LockedBloom(filter, Locks::new()))
        };
        Ok(match self {
            Self::Cuckoo => {
                Box::new(CuckooFilter::<[u8]>::builder().capacity(capacity).false_positive_rate(rate).build()?)
            }
            Self::Bloom => Box::new(bloom(false)?),
            Self::Blocked => Box::new(bloom(true)?),
            Self::Scalable => {
                let builder = ScalableBloomFilter::builder().capacity(capacity / 64).false_positive_rate(rate);
                Box::new(LockedScalable(builder.build()?, Locks::new()))
            }
        })
    }
}

/// Two filters: one that takes lines until it is full, and the one that was full before.
struct Window {
    filters: RwLock<[Box<dyn Memory>; 2]>,
    capacity: u64,
    /// Lines that the newer one has, but for fewer than [`step`](Self::step) of each thread.
    taken: AtomicU64,
    step: u64,
    rotations: AtomicU64,
    hasher: Xxh3,
}

impl Window {
    fn new(kind: Kind, capacity: usize, rate: f64, threads: usize) -> std::result::Result<Self, BuildError> {
        // A line may be taken for one in either filter.
        let build = || kind.build(capacity, rate / 2.0);
        Ok(Self {
            filters: RwLock::new([build()?, build()?]),
            capacity: capacity as u64,
            taken: AtomicU64::new(0),
            // All threads together pass the capacity by a 64th, in filters that do not refuse that.
            step: (capacity / (64 * threads)).clamp(1, 1 << 10) as u64,
            rotations: AtomicU64::new(0),
            hasher: Xxh3::new(),
        })
    }

    /// Keeps those lines of a part that are new; how many lines there were, and how many were kept.
    ///
    /// All threads do so at once: the lock only keeps the filters from being rotated meanwhile. So while it is held nobody puts lines into the older filter, and of those who find
    /// that a line is not there exactly one puts it into the newer one.
    fn keep_new(&self, part: &[u8], kept: &mut Vec<u8>) -> Result<(u64, u64)> {
        let (mut lines, mut unique) = (0, 0);
        // The last rotation, and how many lines were new since, as far as they are not noted.
        let mut since = (0, 0);
        for line in part.split_inclusive(|byte| *byte == b'\n') {
            // The last line of a file is the same with a line break and without.
            let key = line.strip_suffix(b"\n").unwrap_or(line);
            lines += 1;
            if let Some(rotation) = self.new_since(key)? {
                kept.extend_from_slice(line);
                unique += 1;
                since = if since.0 == rotation { (rotation, since.1 + 1) } else { (rotation, 1) };
                if since.1 == self.step {
                    self.note(since);
                    since.1 = 0;
                }
            }
        }
        self.note(since);
        Ok((lines, unique))
    }

    /// Notes that the newer filter has taken so many lines since a rotation, and rotates if it is full.
    fn note(&self, (rotation, lines): (u64, u64)) {
        let is_full = || self.taken.load(Ordering::Relaxed) >= self.capacity;
        {
            let _filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
            if self.rotations.load(Ordering::Relaxed) == rotation {
                self.taken.fetch_add(lines, Ordering::Relaxed);
            }
        }
        if is_full() {
            // Asked again: another thread may have been faster.
            self.rotate(|_| is_full());
        }
    }

    /// Puts a line in if it is new, and says after which rotation that was.
    fn new_since(&self, key: &[u8]) -> Result<Option<u64>> {
        let hash = self.hasher.hash_one(key);
        loop {
            let (rotation, error) = {
                let filters = self.filters.read().unwrap_or_else(PoisonError::into_inner);
                let [newer, older] = &*filters;
                if older.filter().contains_hash(hash) {
                    return Ok(None);
                }
                // The number changes only under the lock.
                let rotation = self.rotations.load(Ordering::Relaxed);
                match newer.insert_if_absent(hash) {
                    Ok(is_new) => return Ok(is_new.then_some(rotation)),
                    Err(error) => (rotation, error),
                }
            };
            // Refused, as it can be when many have passed its capacity at once. Not if another thread has rotated since.
            self.rotate(|newer| newer.filter().estimated_len() as u64 > self.capacity / 2);
            if self.rotations.load(Ordering::Relaxed) == rotation {
                return Err(error.into());
            }
        }
    }

    fn rotate(&self, if_so: impl Fn(&dyn Memory) -> bool) {
        let mut filters = self.filters.write().unwrap_or_else(PoisonError::into_inner);
        if if_so(&*filters[0]) {
            filters.swap(0, 1);
            filters[0].clear();
            self.taken.store(0, Ordering::Relaxed);
            self.rotations.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.filters.read().unwrap_or_else(PoisonError::into_inner).iter().map(|filter| filter.memory_bytes()).sum()
    }
}

/// The next part of the stream, whole lines; empty at the end.
fn next_part(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(PART + 256);
    while part.len() < PART {
        if input.read_until(b'\n', &mut part)? == 0 {
            break;
        }
    }
    Ok(part)
}

fn run(args: &Args) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = args.threads.map_or(cores, |threads| threads as usize);
    let window = Window::new(args.filter, usize::try_from(args.window)?, args.rate, threads)?;
    let (mut input, len): (Box<dyn BufRead>, Option<u64>) = match &args.file {
        Some(path) => {
            let file = File::open(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let len = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            (Box::new(BufReader::with_capacity(PART, file)), len)
        }
        None => (Box::new(BufReader::with_capacity(PART, io::stdin())), None),
    };
    let bar = match len {
        Some(len) => ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr()).with_style(
            ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")?,
        ),
        None => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(ProgressStyle::with_template("{spinner} {bytes}, {bytes_per_sec}")?),
    };
    bar.enable_steady_tick(Duration::from_millis(200));

    let start = Instant::now();
    let output = Mutex::new(BufWriter::new(io::stdout()));
    let (lines, unique) = (AtomicU64::new(0), AtomicU64::new(0));
    // Bounded: what is read waits for those who work on it.
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(2 * threads);
    let receiver = Mutex::new(receiver);
    let failed = AtomicBool::new(false);
    let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let pass_on = || -> Result<()> {
        let mut kept = Vec::new();
        while let Some(part) = next() {
            kept.clear();
            let (all, new) = window.keep_new(&part, &mut kept)?;
            output.lock().unwrap_or_else(PoisonError::into_inner).write_all(&kept)?;
            lines.fetch_add(all, Ordering::Relaxed);
            unique.fetch_add(new, Ordering::Relaxed);
            bar.inc(part.len() as u64);
        }
        Ok(())
    };
    let work = || {
        let result = pass_on();
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
            // So that the reader, which may be waiting for room, notices.
            while next().is_some() {}
        }
        result
    };
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut read = || -> Result<()> {
            while !failed.load(Ordering::Relaxed) {
                let part = next_part(&mut input)?;
                if part.is_empty() || sender.send(part).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let result = read();
        drop(sender);
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        result
    })?;
    output.into_inner().unwrap_or_else(PoisonError::into_inner).flush()?;
    bar.finish_and_clear();

    let (lines, unique, took) = (lines.into_inner(), unique.into_inner(), start.elapsed());
    eprintln!("lines          {lines:>12}");
    eprintln!("passed on      {unique:>12}");
    eprintln!("dropped        {:>12}", lines - unique);
    eprintln!("rotations      {:>12}", window.rotations.load(Ordering::Relaxed));
    eprintln!("filters        {:>12} bytes", window.memory_bytes());
    eprintln!(
        "time           {:>12.2?}, {:.2} million lines/s, {threads} threads",
        took,
        lines as f64 / took.as_secs_f64() / 1e6
    );
    Ok(())
}

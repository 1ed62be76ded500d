//! One round: threads that serve requests, one that changes keys meanwhile, and the checks on both.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst, fence},
    thread::{self, Scope, ScopedJoinHandle},
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use koel::CuckooFilter;

use crate::{
    Result,
    args::Args,
    guard::{Guard, Reply},
    keys::{Keys, Mix, Random, Request, Zipf},
    tally::Tally,
    trace::Trace,
};

/// The most keys of the changing thread that are in at a time.
pub(crate) const LIVE: usize = 1_000;
/// How many requests are made, served and checked at a time, so that any number of them fits in memory.
const BATCH: u64 = 1 << 18;
/// One request of so many is a sample: looked at more closely, and traced.
const SAMPLE: u64 = 64;
/// How long the changing thread rests after each change. Without rest it would take the store, and on a small machine a
/// core, from those that serve, and the highest percentiles would be those of the scheduler.
const REST: Duration = Duration::from_micros(100);

/// What the threads of a round share.
pub(crate) struct Round<'a> {
    args: &'a Args,
    keys: &'a Keys,
    guard: Guard<'a>,
    trace: Option<&'a Trace>,
    bar: &'a ProgressBar,
    zipf: Zipf,
    /// The changing thread numbers its keys and deletes the oldest first, so two counters tell which are in for sure:
    /// those with a number below `acknowledged`, whose insert has returned, and not below `retired`, whose deletion has
    /// not begun.
    acknowledged: AtomicU64,
    retired: AtomicU64,
    served: AtomicBool,
}

/// What belongs to one of the serving threads.
struct Worker<'a> {
    mix: Mix<'a>,
    batch: Vec<Request<'a>>,
    replies: Vec<(Reply, Duration)>,
    random: Random,
    tally: Tally,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        args: &'a Args,
        keys: &'a Keys,
        guard: Guard<'a>,
        trace: Option<&'a Trace>,
        bar: &'a ProgressBar,
    ) -> Self {
        Self {
            args,
            keys,
            guard,
            trace,
            bar,
            zipf: Zipf::new(keys.list.len(), args.zipf),
            acknowledged: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            served: AtomicBool::new(false),
        }
    }

    /// Serves all requests while another thread changes keys; returns what was seen.
    pub(crate) fn run(&self) -> Result<Tally> {
        let (served, changed) = thread::scope(|scope| {
            let changing = spawn(scope, || self.change());
            let served = self.serve_all();
            // Whatever became of serving, the changing thread has to end.
            self.served.store(true, SeqCst);
            (served, joined(changing))
        });
        let mut tally = served?;
        tally.add(&changed?)?;
        self.bar.finish();
        Ok(tally)
    }

    /// Has the workers make requests, serve them and check the replies, each together, so that serving can be timed alone.
    fn serve_all(&self) -> Result<Tally> {
        let threads = self.args.threads();
        let worker = |thread| {
            Ok(Worker {
                mix: Mix::new(self.args, self.keys, &self.zipf, thread),
                batch: Vec::new(),
                replies: Vec::new(),
                random: Random::of(!self.args.seed, thread),
                tally: Tally::new()?,
            })
        };
        let mut workers = (0..threads).map(worker).collect::<Result<Vec<_>>>()?;
        let mut total = Tally::new()?;

        let mut left = self.args.requests;
        while left > 0 {
            let length = left.min(BATCH);
            // The first threads take what does not divide evenly.
            let share = |thread| length / threads + u64::from(thread < length % threads);
            each(&mut workers, |thread, worker| {
                worker.batch = worker.mix.by_ref().take(share(thread) as usize).collect();
                worker.replies.reserve(worker.batch.len());
                Ok(())
            })?;
            let start = Instant::now();
            each(&mut workers, |_, worker| self.serve(worker))?;
            total.elapsed += start.elapsed();
            each(&mut workers, |_, worker| self.check(worker))?;
            self.bar.inc(length);
            left -= length;
        }
        workers.iter().try_for_each(|worker| total.add(&worker.tally))?;
        Ok(total)
    }

    /// The job itself.
    fn serve(&self, worker: &mut Worker<'_>) -> Result<()> {
        let mut last = Instant::now();
        for request in &worker.batch {
            let reply = self.guard.get(&request.key)?;
            let now = Instant::now();
            worker.replies.push((reply, now - last));
            last = now;
        }
        Ok(())
    }

    /// Checks the replies to a batch.
    fn check(&self, worker: &mut Worker<'_>) -> Result<()> {
        let Worker { batch, replies, random, tally, .. } = worker;
        let rate = self.guard.filter.map(CuckooFilter::false_positive_rate);
        let mut lines = String::new();
        for (request, (reply, latency)) in batch.iter().zip(replies.drain(..)) {
            if tally.requests.is_multiple_of(SAMPLE) {
                if let Some(filter) = self.guard.filter {
                    self.examine(filter, tally, request, reply, random)?;
                }
                if let Some(trace) = self.trace {
                    trace.line(&mut lines, self.guard.filter.is_some(), reply, latency);
                }
            }
            tally.reply(request, reply, latency, rate)?;
        }
        self.trace.map_or(Ok(()), |trace| trace.append(&lines))
    }

    /// Looks for false negatives where the request alone does not show them. The reads of the store are not counted: they
    /// are no part of the job.
    fn examine(
        &self,
        filter: &CuckooFilter<str>,
        tally: &mut Tally,
        request: &Request<'_>,
        reply: Reply,
        random: &mut Random,
    ) -> Result<()> {
        // Does the store really not have what the filter denied?
        if reply == Reply::FilterAbsent && !request.present {
            tally.check(!self.guard.store.read(&request.key)?);
        }
        // Does the filter have the keys that the changing thread has inserted: the oldest, the latest, any other? `retired`
        // never passes `acknowledged`, so read in this order they enclose a range, if an empty one.
        let first = self.retired.load(SeqCst);
        let end = self.acknowledged.load(SeqCst);
        if first == end {
            return Ok(());
        }
        for number in [first, end - 1, first + random.below((end - first) as usize) as u64] {
            let found = filter.contains(self.keys.passing(number).as_str());
            // If the look-up saw anything of the key's deletion, this sees the counter that was raised before it, and there
            // is no verdict.
            fence(SeqCst);
            if self.retired.load(SeqCst) <= number {
                tally.check(found);
            }
        }
        Ok(())
    }

    /// Inserts and deletes keys until all requests are served, and then deletes the rest.
    fn change(&self) -> Result<Tally> {
        let mut tally = Tally::new()?;
        let mut check = |key: &str| {
            if let Some(filter) = self.guard.filter {
                tally.check(filter.contains(key));
            }
        };
        let (mut inserted, mut removed) = (0, 0);
        while !self.served.load(SeqCst) {
            if inserted - removed == LIVE as u64 {
                let key = self.keys.passing(removed);
                check(&key);
                removed += 1;
                self.retired.store(removed, SeqCst);
                self.guard.remove(&key)?;
            } else {
                let key = self.keys.passing(inserted);
                self.guard.insert(&key)?;
                inserted += 1;
                self.acknowledged.store(inserted, SeqCst);
                check(&key);
            }
            thread::sleep(REST);
        }
        for number in removed..inserted {
            let key = self.keys.passing(number);
            check(&key);
            self.guard.remove(&key)?;
        }
        tally.changed = inserted;
        Ok(tally)
    }
}

/// Runs the work for each worker in a thread of its own; returns when all have ended.
fn each<W: Send>(workers: &mut [W], work: impl Fn(u64, &mut W) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            (0..).zip(workers).map(|(number, worker)| spawn(scope, move || work(number, worker))).collect();
        // All are joined before the first error is returned: the scope panics over a panic that nobody has seen.
        threads.into_iter().map(joined).fold(Ok(()), Result::and)
    })
}

/// `Scope::spawn` panics if the system has no more threads to give; this returns an error.
fn spawn<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    thread::Builder::new().spawn_scoped(scope, work)
}

/// What a thread returned, if it could be started and did not panic.
fn joined<R>(thread: io::Result<ScopedJoinHandle<'_, Result<R>>>) -> Result<R> {
    let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
}

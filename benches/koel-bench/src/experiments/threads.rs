//! Several threads on one table.

use std::{
    ops::Range,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use super::Experiment;
use crate::{
    keys::{self, Answers, LookUps},
    lab::{Lab, Subject},
    limit::Way,
    measurement::{LIMIT_ONE, Measurement, mops},
    options::{Bytes, Settings},
    peers::{Peer, Plan, Shared, Spec},
    report::tables,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "threads",
    title: "Threads",
    explanation: "Million operations per second of all threads together, from the first start to the last end. Read only (all filters): half hits at \
                  80% load. 95/5: 19 look-ups, then one insert of a new key, from 80% load on (filters that batch: 1,216, then 64). 50/50: two \
                  look-ups, one insert and one removal, each thread with keys of its own, at 80% load. Insert only: an empty table to 90%. In the \
                  mixed ones look-ups ask half for keys that stay in, which have to be found. The limit is read by as many threads.",
    steps,
    run,
    render,
};

/// What threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    ReadOnly,
    Mostly,
    Half,
    InsertOnly,
}

const MIXES: [Mix; 4] = [Mix::ReadOnly, Mix::Mostly, Mix::Half, Mix::InsertOnly];
/// The load to start from.
const LOAD: u32 = 80;
/// The load that an empty table is filled to.
const FILL_LOAD: u32 = 90;
/// Batches are made of so many blocks of the mix.
const BATCH: usize = 64;

impl Mix {
    const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read only",
            Self::Mostly => "95/5",
            Self::Half => "50/50 with removals",
            Self::InsertOnly => "insert only",
        }
    }

    /// Look-ups, inserts and removals of a block.
    const fn block(self) -> (usize, usize, usize) {
        match self {
            Self::ReadOnly => (1, 0, 0),
            Self::Mostly => (19, 1, 0),
            Self::Half => (2, 1, 1),
            Self::InsertOnly => (0, 1, 0),
        }
    }

    const fn load(self) -> u32 {
        match self {
            Self::InsertOnly => FILL_LOAD,
            _ => LOAD,
        }
    }

    fn takes(self, spec: &Spec) -> bool {
        match self {
            Self::ReadOnly => true,
            Self::Mostly | Self::InsertOnly => spec.shared,
            Self::Half => spec.shared && spec.removes,
        }
    }
}

/// The numbers of keys that only thread `thread` inserts.
const fn own_keys(thread: usize) -> u64 {
    1 << 40 | (thread as u64) << 32
}

fn steps(settings: &Settings) -> u64 {
    let sizes = settings.two_sizes();
    let rounds: u64 = sizes.iter().map(|bytes| settings.rounds_for(*bytes)).sum();
    (MIXES.len() * settings.threads.len()) as u64 * rounds
}

fn run(lab: &mut Lab<'_>) {
    for bytes in lab.settings.two_sizes() {
        lab.say(format!("threads, {}: filling", Bytes(bytes)));
        let plan = lab.plan(bytes, LOAD);
        let filled = lab.specs(bytes).into_iter().filter_map(|spec| Subject::filled(spec, &plan).ok());
        let mut entrants: Vec<Entrant> = filled.map(|subject| Entrant { subject, extra: 0 }).collect();
        for mix in MIXES {
            if mix == Mix::InsertOnly {
                entrants.clear();
            }
            for threads in lab.settings.threads.clone() {
                lab.say(format!("threads, {}, {}, {threads} threads", Bytes(bytes), mix.name()));
                if mix == Mix::InsertOnly {
                    insert_only(lab, bytes, threads);
                } else {
                    mixed(lab, &mut entrants, bytes, mix, threads);
                }
            }
        }
    }
}

/// A filter that is filled once for all mixes.
struct Entrant {
    subject: Subject,
    /// Keys that were inserted on the way and cannot be taken out again.
    extra: u64,
}

impl Entrant {
    /// Builds the filter anew if what cannot be removed has become more than a twentieth of its keys.
    fn refresh(&mut self, plan: &Plan) {
        if self.extra > plan.keys / 20 {
            self.subject = Subject::filled(self.subject.spec, plan).expect("as before");
            self.extra = 0;
        }
    }
}

/// What one thread does in one sample.
struct Script {
    look_ups: LookUps,
    inserts: Vec<u64>,
    removes: Vec<u64>,
}

/// Runs one piece of work on each thread; the time from the first start to the last end.
fn together<W: FnOnce() + Send>(works: Vec<W>) -> Duration {
    let barrier = Barrier::new(works.len());
    let times: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let run = |work: W| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                work();
                (start, Instant::now())
            })
        };
        let handles: Vec<_> = works.into_iter().map(run).collect();
        handles.into_iter().map(|handle| handle.join().expect("a thread of the benchmark")).collect()
    });
    let start = times.iter().map(|(start, _)| *start).min().expect("a thread");
    let end = times.iter().map(|(_, end)| *end).max().expect("a thread");
    end - start
}

/// The numbers of a thread's own keys in a round: those to insert, and how many of them stay in on the way.
#[derive(Clone, Copy)]
struct Window {
    each_round: u64,
    width: u64,
}

impl Window {
    fn inserted(self, thread: usize, round: u64) -> Range<u64> {
        let start = own_keys(thread) + self.width + round * self.each_round;
        start..start + self.each_round
    }

    fn removed(self, thread: usize, round: u64) -> Range<u64> {
        let inserted = self.inserted(thread, round);
        inserted.start - self.width..inserted.end - self.width
    }

    /// What is in before the given round.
    fn staying(self, thread: usize, round: u64) -> Range<u64> {
        let start = self.removed(thread, round).start;
        start..start + self.width
    }
}

fn hashes(numbers: Range<u64>) -> Vec<u64> {
    numbers.map(keys::present).collect()
}

fn mixed(lab: &mut Lab<'_>, entrants: &mut [Entrant], bytes: u64, mix: Mix, threads: usize) {
    let plan = lab.plan(bytes, mix.load());
    let (looked_up, inserted, removed) = mix.block();
    let (count, passes) = lab.sample(bytes);
    // As many inserts as a tenth of the slots at most, so that 95/5 ends at 90% load, and whole batches of them.
    let most =
        (lab.settings.look_ups * 2 / (looked_up + inserted + removed)).min((plan.slots() / 10) as usize / threads);
    let blocks = (most / BATCH).max(1) * BATCH;
    let window =
        Window { each_round: (blocks * inserted) as u64, width: (plan.slots() / 256 / threads as u64).clamp(64, 4096) };

    let taking_part = entrants.iter_mut().filter(|entrant| mix.takes(&entrant.subject.spec));
    let mut subjects: Vec<_> = taking_part.map(|entrant| (entrant, Vec::new(), Answers::default(), 0_usize)).collect();
    if mix == Mix::Half {
        for (entrant, ..) in &mut subjects {
            for thread in 0..threads {
                entrant.subject.filter.insert_many(&hashes(window.staying(thread, 0)));
            }
        }
    }
    let mut limit = Vec::new();
    let array = (mix == Mix::ReadOnly).then(|| lab.array(bytes));

    for round in 0..lab.settings.rounds_for(bytes) {
        let scripts: Vec<Script> = (0..threads)
            .map(|thread| {
                let count = if mix == Mix::ReadOnly { count } else { blocks * looked_up };
                Script {
                    look_ups: LookUps::random(plan.keys, count, 50, 1 + round * 64 + thread as u64),
                    inserts: hashes(window.inserted(thread, round)),
                    removes: if mix == Mix::Half { hashes(window.removed(thread, round)) } else { Vec::new() },
                }
            })
            .collect();
        let warm_up = LookUps::random(plan.keys, lab.warm_up(bytes), 50, 63 + round * 64).hashes;
        let mut ignored = vec![false; warm_up.len()];
        for (entrant, samples, answers, wrong) in &mut subjects {
            entrant.refresh(&plan);
            let subject = &mut entrant.subject;
            subject.filter.contains_many(&warm_up, &mut ignored);
            let outcome = sample(subject, &scripts, mix, if mix == Mix::ReadOnly { passes } else { 1 });
            samples.push(outcome.rate);
            answers.add(outcome.answers);
            *wrong += outcome.wrong;
            if mix == Mix::Mostly {
                for script in &scripts {
                    let removed = subject.filter.remove_many(&script.inserts);
                    entrant.extra += (script.inserts.len() - removed) as u64;
                }
            }
        }
        if let Some(array) = &array {
            std::hint::black_box(array.read(Way::best(), false, &warm_up));
            let works = scripts.iter().map(|script| {
                move || {
                    for _ in 0..passes {
                        std::hint::black_box(array.read(Way::best(), false, &script.look_ups.hashes));
                    }
                }
            });
            let taken = together(works.collect());
            limit.push(mops((threads * passes * count) as u64, taken));
        }
        lab.step();
    }
    let record =
        |peer: &str| Measurement::new("threads", mix.name(), peer).table(bytes, mix.load()).hits(50).threads(threads);
    for (entrant, samples, answers, wrong) in subjects {
        if mix == Mix::Half {
            for thread in 0..threads {
                entrant.subject.filter.remove_many(&hashes(window.staying(thread, lab.settings.rounds_for(bytes))));
            }
        }
        let peer = entrant.subject.spec.name;
        lab.check(peer, &format!("{}, {}, {threads} threads", mix.name(), Bytes(bytes)), answers);
        let mut measurement = record(peer).samples(samples);
        measurement.note = (wrong > 0).then(|| format!("{wrong} inserts refused or removals not found"));
        lab.record(measurement);
    }
    if array.is_some() {
        lab.record(record(LIMIT_ONE).samples(limit));
    }
}

struct Outcome {
    rate: f64,
    answers: Answers,
    /// Inserts that were refused and removals that found nothing.
    wrong: usize,
}

/// All threads go through their scripts once (read only: several times).
fn sample(subject: &Subject, scripts: &[Script], mix: Mix, times: usize) -> Outcome {
    let filter = &*subject.filter;
    let mut found: Vec<Vec<bool>> = scripts.iter().map(|script| vec![false; script.look_ups.hashes.len()]).collect();
    let mut done = vec![0; scripts.len()];
    let works = scripts.iter().zip(&mut found).zip(&mut done).map(|((script, found), done)| {
        move || {
            if mix == Mix::ReadOnly {
                (0..times).for_each(|_| filter.contains_many(&script.look_ups.hashes, found));
            } else {
                let factor = if subject.spec.batched { BATCH } else { 1 };
                *done = follow(filter, script, mix, factor, found);
            }
        }
    });
    let taken = together(works.collect());
    let mut answers = Answers::default();
    scripts.iter().zip(&found).for_each(|(script, found)| answers.add(script.look_ups.check(found)));
    let changes: usize = scripts.iter().map(|script| script.inserts.len() + script.removes.len()).sum();
    let look_ups: usize = scripts.iter().map(|script| script.look_ups.hashes.len()).sum();
    let done: usize = if mix == Mix::ReadOnly { changes } else { done.iter().sum() };
    Outcome {
        rate: mops((look_ups * times + if mix == Mix::ReadOnly { 0 } else { done }) as u64, taken),
        answers,
        wrong: changes - done,
    }
}

/// Goes through the script block by block; how many inserts and removals were done.
fn follow(filter: &dyn Peer, script: &Script, mix: Mix, factor: usize, found: &mut [bool]) -> usize {
    let shared: &dyn Shared = filter.shared().expect("only shared filters are mixed");
    let (looked_up, inserted, removed) = mix.block();
    let (looked_up, inserted, removed) = (looked_up * factor, inserted * factor, removed * factor);
    let blocks = script.inserts.len() / inserted;
    let mut done = 0;
    for block in 0..blocks {
        let range = block * looked_up..(block + 1) * looked_up;
        filter.contains_many(&script.look_ups.hashes[range.clone()], &mut found[range]);
        done += shared.insert_many(&script.inserts[block * inserted..(block + 1) * inserted]);
        if removed > 0 {
            done += shared.remove_many(&script.removes[block * removed..(block + 1) * removed]);
        }
    }
    done
}

fn insert_only(lab: &mut Lab<'_>, bytes: u64, threads: usize) {
    let plan = lab.plan(bytes, FILL_LOAD);
    // Made beforehand: nobody is charged for them.
    let all: Vec<u64> = hashes(0..plan.keys / threads as u64 * threads as u64);
    let specs = lab.specs(bytes).into_iter().filter(|spec| Mix::InsertOnly.takes(spec));
    let mut results: Vec<_> = specs.map(|spec| (spec, Vec::new(), 0)).collect();
    for round in 0..lab.settings.rounds_for(bytes) {
        // Large tables take long to fill: three rounds are enough.
        for (spec, samples, refused) in results.iter_mut().filter(|_| bytes <= 8 << 20 || round < 3) {
            let Ok(subject) = Subject::empty(*spec, &plan) else { continue };
            let shared = subject.filter.shared().expect("only shared filters");
            let mut done = vec![0; threads];
            let works = done.iter_mut().zip(all.chunks(all.len() / threads)).map(|(done, own)| {
                move || *done = own.chunks(keys::CHUNK).map(|chunk| shared.insert_many(chunk)).sum()
            });
            let taken = together(works.collect());
            let inserted: usize = done.iter().sum();
            *refused += all.len() - inserted;
            samples.push(mops(inserted as u64, taken));
        }
        lab.step();
    }
    for (spec, samples, refused) in results {
        let measurement = Measurement::new("threads", Mix::InsertOnly.name(), spec.name);
        let mut measurement = measurement.table(bytes, FILL_LOAD).threads(threads).samples(samples);
        measurement.note = (refused > 0).then(|| format!("{refused} inserts refused"));
        lab.record(measurement);
    }
}

fn render(measurements: &[&Measurement]) -> String {
    tables::grid(
        measurements,
        |one| format!("{}, {}", Bytes(one.bytes), one.operation),
        |one| format!("{} thread{}", one.threads, if one.threads == 1 { "" } else { "s" }),
    )
}

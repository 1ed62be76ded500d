//! What experiments share: the settings, the progress bar, the records, and the steps that most of them are made of.

use std::time::Duration;

use indicatif::ProgressBar;

use crate::{
    keys::{self, Answers, LookUps},
    limit::{Array, Way},
    measurement::{LIMIT_ONE, LIMIT_TWO, Measurement, mops, time},
    options::Settings,
    peers::{self, Peer, Plan, Spec},
};

/// Tables up to this size lie in a cache of their own core, so that few keys are looked up often; above, many keys once.
pub const CACHED_BYTES: u64 = 4 << 20;
/// Keys of a sample on such a table: their array must not drive the table out of the cache, nor fit the first level together with it.
const CACHED_KEYS: usize = 1 << 16;

/// A run.
#[derive(Debug)]
pub struct Lab<'a> {
    /// What to run.
    pub settings: &'a Settings,
    /// All figures so far.
    pub measurements: Vec<Measurement>,
    /// Keys that a filter should have found and did not: filter, where, how many.
    pub missed: Vec<(String, String, u64)>,
    progress: ProgressBar,
}

/// A filter that is being measured.
pub struct Subject {
    /// Which.
    pub spec: Spec,
    /// The filter itself.
    pub filter: Box<dyn Peer>,
    /// How many of the keys, from the first on, are in.
    pub keys: u64,
}

impl Subject {
    /// Builds a filter for the first `plan.keys` keys and writes its pages. A fixed one has all keys from the start.
    ///
    /// # Errors
    ///
    /// What the filter says.
    pub fn empty(spec: Spec, plan: &Plan) -> Result<Self, String> {
        let mut filter = (spec.build)(plan)?;
        let keys = if spec.fixed { plan.keys } else { 0 };
        filter.clear();
        Ok(Self { spec, filter, keys })
    }

    /// Puts keys in until there are `to`; the time that it took, without that of making the keys. Stops where the filter refuses.
    pub fn fill(&mut self, to: u64) -> Duration {
        let mut taken = Duration::ZERO;
        if self.keys < to {
            self.keys += keys::in_chunks(self.keys, to, |hashes| {
                let mut inserted = 0;
                taken += time(|| inserted = self.filter.insert_many(hashes));
                inserted
            });
        }
        taken
    }

    /// Builds and fills.
    ///
    /// # Errors
    ///
    /// What the filter says, or where it refused.
    pub fn filled(spec: Spec, plan: &Plan) -> Result<Self, String> {
        let mut subject = Self::empty(spec, plan)?;
        subject.fill(plan.keys);
        subject.is_full_as_planned(plan)?;
        Ok(subject)
    }

    /// # Errors
    ///
    /// Where the filter refused, if it holds less than it should.
    pub fn is_full_as_planned(&self, plan: &Plan) -> Result<(), String> {
        if self.keys >= plan.keys {
            return Ok(());
        }
        Err(format!("refused at {:.1}%", 100.0 * self.keys as f64 / plan.slots() as f64))
    }
}

impl<'a> Lab<'a> {
    /// A run with nothing done.
    pub fn new(settings: &'a Settings, progress: ProgressBar) -> Self {
        Self { settings, measurements: Vec::new(), missed: Vec::new(), progress }
    }

    /// The filters that this run measures on tables of so many bytes.
    pub fn specs(&self, bytes: u64) -> Vec<Spec> {
        peers::chosen(self.settings).into_iter().filter(|spec| spec.affordable(self.settings, bytes)).collect()
    }

    /// The same for questions of less weight: in tables larger than the cache only the filters that fill fast, and their closest peers.
    pub fn quick_specs(&self, bytes: u64) -> Vec<Spec> {
        let all = self.settings.peers_chosen || bytes <= 8 << 20;
        self.specs(bytes).into_iter().filter(|spec| all || spec.large).collect()
    }

    /// The plan of a table at a load.
    pub fn plan(&self, bytes: u64, load: u32) -> Plan {
        Plan { bytes, keys: bytes / 2 * u64::from(load) / 100, huge_pages: self.settings.huge_pages }
    }

    /// The limit of an array of this size.
    ///
    /// # Panics
    ///
    /// If there is no memory for it.
    pub fn array(&self, bytes: u64) -> Array {
        Array::new(bytes as usize, self.settings.huge_pages).expect("memory for the limit")
    }

    /// Keeps a figure.
    pub fn record(&mut self, measurement: Measurement) {
        self.measurements.push(measurement);
    }

    /// Says what is going on, in front of the bar.
    pub fn say(&self, what: impl Into<String>) {
        self.progress.set_message(what.into());
    }

    /// A step is done.
    pub fn step(&self) {
        self.progress.inc(1);
    }

    /// Notes whether a filter answered right.
    pub fn check(&mut self, peer: &str, what: &str, answers: Answers) {
        if answers.missed > 0 {
            self.missed.push((peer.to_string(), what.to_string(), answers.missed));
        }
    }

    /// How many keys are looked up before the samples of a round: enough to see nearly every line of the table, as far as one can be in cache.
    pub fn warm_up(&self, bytes: u64) -> usize {
        let lines = (bytes / 64) as usize;
        (2 * lines).clamp(self.sample(bytes).0, 2 << 20)
    }

    /// How many keys a sample on a table of this size looks up, and how often it goes over them.
    pub fn sample(&self, bytes: u64) -> (usize, usize) {
        let keys = if bytes <= CACHED_BYTES { self.settings.look_ups.min(CACHED_KEYS) } else { self.settings.look_ups };
        (keys, (self.settings.look_ups / keys).max(1))
    }
}

/// Look-ups by several contestants in interleaved rounds.
pub struct Contest<'c> {
    contestants: Vec<Contestant<'c>>,
    passes: usize,
}

/// What answers look-ups.
type LookUp<'c> = Box<dyn Fn(&[u64], &mut [bool]) + 'c>;

struct Contestant<'c> {
    name: String,
    /// How, if this is a limit.
    way: Option<Way>,
    look_up: LookUp<'c>,
    /// For each set of keys one figure a round, and whether the answers were right.
    samples: Vec<Vec<f64>>,
    answers: Vec<Answers>,
}

/// What came of a contestant on one set of keys.
#[derive(Debug)]
pub struct Placed {
    /// Its name.
    pub peer: String,
    /// A figure for each round.
    pub samples: Vec<f64>,
    /// What it answered.
    pub answers: Answers,
    /// The best way to read, if it is a limit.
    pub way: Option<&'static str>,
}

impl<'c> Contest<'c> {
    /// Nobody yet; a sample goes `passes` times over its keys.
    pub fn new(passes: usize) -> Self {
        Self { contestants: Vec::new(), passes }
    }

    /// Another one.
    pub fn add(&mut self, name: impl Into<String>, look_up: impl Fn(&[u64], &mut [bool]) + 'c) {
        let look_up = Box::new(look_up);
        self.contestants.push(Contestant {
            name: name.into(),
            way: None,
            look_up,
            samples: Vec::new(),
            answers: Vec::new(),
        });
    }

    /// The limit, read in every way there is.
    pub fn add_limit(&mut self, array: &'c Array) {
        for (two, name) in [(false, LIMIT_ONE), (true, LIMIT_TWO)] {
            for way in Way::available() {
                self.add(name, move |hashes, _| {
                    std::hint::black_box(array.read(way, two, hashes));
                });
                self.contestants.last_mut().expect("just added").way = Some(way);
            }
        }
    }

    /// One round: everybody looks up the same sets of keys, each after other keys that nobody counts. So the table is as warm as it will be
    /// whoever came before.
    pub fn round(&mut self, warm_up: &LookUps, sets: &[LookUps]) {
        let longest = sets.iter().map(|set| set.hashes.len()).max().unwrap_or(0);
        let mut found = vec![false; longest.max(warm_up.hashes.len())];
        for contestant in &mut self.contestants {
            contestant.samples.resize_with(sets.len(), Vec::new);
            contestant.answers.resize_with(sets.len(), Answers::default);
            (contestant.look_up)(&warm_up.hashes, &mut found[..warm_up.hashes.len()]);
            for (set, (samples, answers)) in sets.iter().zip(contestant.samples.iter_mut().zip(&mut contestant.answers))
            {
                let found = &mut found[..set.hashes.len()];
                let taken = time(|| {
                    for _ in 0..self.passes {
                        (contestant.look_up)(std::hint::black_box(&set.hashes), found);
                        std::hint::black_box(&mut *found);
                    }
                });
                samples.push(mops((set.hashes.len() * self.passes) as u64, taken));
                if contestant.way.is_none() {
                    answers.add(set.check(found));
                }
            }
        }
    }

    /// What came of everybody, for each set of keys; of the ways to read only the best of one word and the best of two.
    pub fn finish(self, sets: usize) -> Vec<Vec<Placed>> {
        let mut all: Vec<Vec<Placed>> = (0..sets).map(|_| Vec::new()).collect();
        for contestant in self.contestants {
            let results = contestant.samples.into_iter().zip(contestant.answers);
            for (placed, (samples, answers)) in all.iter_mut().zip(results) {
                let way = contestant.way.map(Way::name);
                let new = Placed { peer: contestant.name.clone(), samples, answers, way };
                match placed.iter_mut().find(|old| new.way.is_some() && old.peer == new.peer) {
                    Some(old) if median(&old.samples) < median(&new.samples) => *old = new,
                    Some(_) => {}
                    None => placed.push(new),
                }
            }
        }
        all
    }
}

fn median(samples: &[f64]) -> f64 {
    Measurement::new("", "", "").samples(samples.to_vec()).median
}

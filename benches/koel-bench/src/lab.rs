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
    look_up: LookUp<'c>,
    /// Whether its answers mean anything.
    answers: bool,
    samples: Vec<f64>,
    answered: Answers,
}

impl<'c> Contest<'c> {
    /// Nobody yet; a sample goes `passes` times over its keys.
    pub fn new(passes: usize) -> Self {
        Self { contestants: Vec::new(), passes }
    }

    /// Another one.
    pub fn add(&mut self, name: impl Into<String>, look_up: impl Fn(&[u64], &mut [bool]) + 'c) {
        self.contestants.push(Contestant {
            name: name.into(),
            look_up: Box::new(look_up),
            answers: true,
            samples: Vec::new(),
            answered: Answers::default(),
        });
    }

    /// The limit, read in every way there is.
    pub fn add_limit(&mut self, array: &'c Array) {
        for two in [false, true] {
            for way in Way::available() {
                let name = format!("{}, {}", if two { LIMIT_TWO } else { LIMIT_ONE }, way.name());
                self.add(name, move |hashes, _| {
                    std::hint::black_box(array.read(way, two, hashes));
                });
                self.contestants.last_mut().expect("just added").answers = false;
            }
        }
    }

    /// One round: everybody looks up the same keys, after as many others that nobody counts.
    pub fn round(&mut self, warm_up: &LookUps, look_ups: &LookUps) {
        let mut found = vec![false; look_ups.hashes.len().max(warm_up.hashes.len())];
        for contestant in &mut self.contestants {
            (contestant.look_up)(&warm_up.hashes, &mut found[..warm_up.hashes.len()]);
            let found = &mut found[..look_ups.hashes.len()];
            let taken = time(|| {
                for _ in 0..self.passes {
                    (contestant.look_up)(std::hint::black_box(&look_ups.hashes), found);
                    std::hint::black_box(&mut *found);
                }
            });
            contestant.samples.push(mops((look_ups.hashes.len() * self.passes) as u64, taken));
            if contestant.answers {
                contestant.answered.add(look_ups.check(found));
            }
        }
    }

    /// Names, samples and answers; of the ways to read only the best of one word and the best of two, with the way as a note.
    pub fn finish(self) -> Vec<(String, Vec<f64>, Answers, Option<String>)> {
        let median = |samples: &[f64]| Measurement::new("", "", "").samples(samples.to_vec()).median;
        let mut results = Vec::new();
        let mut limits: Vec<(&str, Vec<f64>, String)> = Vec::new();
        for contestant in self.contestants {
            let limit = [LIMIT_ONE, LIMIT_TWO].into_iter().find(|limit| contestant.name.starts_with(limit));
            let Some(limit) = limit else {
                results.push((contestant.name, contestant.samples, contestant.answered, None));
                continue;
            };
            let way = contestant.name[limit.len() + 2..].to_string();
            match limits.iter_mut().find(|(name, ..)| *name == limit) {
                Some((_, samples, best)) if median(samples) < median(&contestant.samples) => {
                    *samples = contestant.samples;
                    *best = way;
                }
                Some(_) => {}
                None => limits.push((limit, contestant.samples, way)),
            }
        }
        results.extend(
            limits.into_iter().map(|(name, samples, way)| (name.to_string(), samples, Answers::default(), Some(way))),
        );
        results
    }
}

//! The keys: those in the store, those that never are, and those that come and go; and a reproducible mix of requests for them.

use std::{borrow::Cow, fs, path::Path};

use crate::{Result, args::Args};

const GENERATED: usize = 1_000_000;

/// The keys in the store, and a mark that occurs in none of them, from which keys can be made that are surely others.
pub(crate) struct Keys {
    pub(crate) list: Vec<String>,
    mark: String,
}

impl Keys {
    pub(crate) fn generated(seed: u64) -> Self {
        let mut random = Random(seed);
        Self::new((0..GENERATED).map(|_| format!("user:{:016x}", random.next())).collect())
    }

    pub(crate) fn from_file(file: &Path) -> Result<Self> {
        let name = file.display();
        let bytes = fs::read(file).map_err(|error| format!("cannot read keys from {name}: {error}"))?;
        let mut list = Vec::new();
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let key = str::from_utf8(line).map_err(|_| format!("line {number} of {name} is not UTF-8"))?;
            if !key.is_empty() {
                list.push(key.to_owned());
            }
        }
        if list.is_empty() {
            return Err(format!("no keys in {name}").into());
        }
        Ok(Self::new(list))
    }

    fn new(mut list: Vec<String>) -> Self {
        // Sorted keys load several times as fast: each goes next to the one before in the store's tree.
        list.sort_unstable();
        list.dedup();
        let mark =
            (0_u64..).map(|number| format!("~{number}~")).find(|mark| !list.iter().any(|key| key.contains(mark)));
        Self { list, mark: mark.expect("finitely many keys do not contain every mark") }
    }

    /// In random order. The order is that of popularity, and popular keys should not be neighbours in the store's tree.
    pub(crate) fn shuffled(mut self, seed: u64) -> Self {
        let mut random = Random(!seed);
        for last in (1..self.list.len()).rev() {
            self.list.swap(last, random.below(last + 1));
        }
        self
    }

    /// A key that is never in the store. It begins with one that is, so that the store has to look in a random place of its
    /// tree and not always in the same, cached one.
    fn absent(&self, random: &mut Random) -> String {
        let start = &self.list[random.below(self.list.len())];
        format!("{start}{}{:016x}", self.mark, random.next())
    }

    /// A key that comes and goes: shorter than any absent one with this mark, so never the same.
    pub(crate) fn passing(&self, number: u64) -> String {
        format!("{}{number:016x}", self.mark)
    }
}

/// A request, and whether its key is in the store: known from how the key was made, not from asking.
pub(crate) struct Request<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) present: bool,
}

/// An endless sequence of requests, the same for the same seed and thread.
pub(crate) struct Mix<'a> {
    keys: &'a Keys,
    zipf: &'a Zipf,
    absent: f64,
    random: Random,
}

impl<'a> Mix<'a> {
    pub(crate) fn new(args: &Args, keys: &'a Keys, zipf: &'a Zipf, thread: u64) -> Self {
        Self { keys, zipf, absent: args.absent, random: Random::of(args.seed, thread) }
    }
}

impl<'a> Iterator for Mix<'a> {
    type Item = Request<'a>;

    fn next(&mut self) -> Option<Request<'a>> {
        Some(if self.random.unit() < self.absent {
            Request { key: self.keys.absent(&mut self.random).into(), present: false }
        } else {
            Request { key: self.keys.list[self.zipf.rank(&mut self.random)].as_str().into(), present: true }
        })
    }
}

/// The Zipf distribution: the n-th of the ranks has a weight of `n^-exponent`.
pub(crate) struct Zipf {
    /// Sum of the weights up to each rank.
    sums: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(ranks: usize, exponent: f64) -> Self {
        let add = |sum: &mut f64, rank| {
            *sum += f64::powf(rank as f64, -exponent);
            Some(*sum)
        };
        Self { sums: (1..=ranks).scan(0.0, add).collect() }
    }

    /// A random rank, counted from 0.
    fn rank(&self, random: &mut Random) -> usize {
        let last = self.sums.len() - 1;
        let point = random.unit() * self.sums[last];
        // Rounding may put the point on the very end.
        self.sums.partition_point(|sum| *sum <= point).min(last)
    }
}

/// SplitMix64: small, reproducible, and random enough.
pub(crate) struct Random(u64);

impl Random {
    /// One of many streams of one seed.
    pub(crate) fn of(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ Self(stream).next());
        Self(random.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up, below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }
}

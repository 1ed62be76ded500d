//! The physical limit: how many independent random 8-byte reads per second the machine makes from an array of the size and page kind
//! of the tables. The best of a plain loop, of software prefetch, and of vector gathers counts.
//!
//! A key's index is computed from its hash by one multiplication, the cheapest that a filter could do; the words are added up, no more.
//! This is the only file with unsafe code: it goes without bounds checks and uses instructions by name.
#![allow(unsafe_code, reason = "reads without bounds checks, prefetch and gather instructions")]

use memmap2::MmapMut;

/// Keys whose reads are asked for ahead.
const AHEAD: usize = 32;

/// An array to read from.
#[derive(Debug)]
pub struct Array {
    map: MmapMut,
    len: usize,
}

/// How it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One key after another: the processor finds the independent reads itself.
    Plain,
    /// The line of a later key is asked for beforehand, into the first-level cache. Some processors drop such a request when many are under way.
    PrefetchFirst,
    /// The same into the second-level cache.
    PrefetchSecond,
    /// Eight keys in one AVX-512 instruction.
    Gather,
}

impl Way {
    /// All there are on this processor.
    pub fn available() -> Vec<Self> {
        let mut ways = vec![Self::Plain];
        if cfg!(target_arch = "x86_64") {
            ways.extend([Self::PrefetchSecond, Self::PrefetchFirst]);
        }
        if has_gather() {
            ways.push(Self::Gather);
        }
        ways
    }

    /// The one that is best nearly everywhere, for measurements that have no time to try all.
    pub fn best() -> Self {
        *Self::available().get(1).unwrap_or(&Self::Plain)
    }

    /// As records name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::PrefetchFirst => "prefetch, first level",
            Self::PrefetchSecond => "prefetch, second level",
            Self::Gather => "gather",
        }
    }
}

fn has_gather() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512dq");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The first and second word of a key.
#[inline(always)]
const fn index(hash: u64, len: usize) -> usize {
    (((hash >> 32) * len as u64) >> 32) as usize
}

#[inline(always)]
const fn second(hash: u64, len: usize) -> usize {
    (((hash & 0xffff_ffff) * len as u64) >> 32) as usize
}

impl Array {
    /// An array of `bytes`, written once, so that every page is there.
    ///
    /// # Errors
    ///
    /// If the system has not so much memory.
    pub fn new(bytes: usize, huge_pages: bool) -> std::io::Result<Self> {
        let len = (bytes / 8).clamp(1, u32::MAX as usize);
        let mut map = MmapMut::map_anon(len * 8)?;
        #[cfg(target_os = "linux")]
        if huge_pages {
            // Only advice: without huge pages the tables have none either.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = huge_pages;
        map.chunks_mut(8).enumerate().for_each(|(at, word)| word[0] = at as u8);
        Ok(Self { map, len })
    }

    fn words(&self) -> &[u64] {
        // SAFETY: a map is aligned to pages, has `len` words, and any bytes are a valid integer.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }

    /// Reads one word for each key, or two.
    #[inline(never)]
    pub fn read(&self, way: Way, two: bool, hashes: &[u64]) -> u64 {
        let words = self.words();
        match (way, two) {
            (Way::Plain, false) => plain::<false>(words, hashes),
            (Way::Plain, true) => plain::<true>(words, hashes),
            (Way::PrefetchFirst, false) => prefetched::<false, true>(words, hashes),
            (Way::PrefetchFirst, true) => prefetched::<true, true>(words, hashes),
            (Way::PrefetchSecond, false) => prefetched::<false, false>(words, hashes),
            (Way::PrefetchSecond, true) => prefetched::<true, false>(words, hashes),
            (Way::Gather, two) => gathered(words, two, hashes),
        }
    }
}

/// Reads one key's words.
#[inline(always)]
fn read_key<const TWO: bool>(words: &[u64], hash: u64) -> u64 {
    let len = words.len();
    // SAFETY: both are below `len`: 32 bits times `len`, divided by 2^32.
    let first = unsafe { *words.get_unchecked(index(hash, len)) };
    if TWO {
        // SAFETY: as above.
        first.wrapping_add(unsafe { *words.get_unchecked(second(hash, len)) })
    } else {
        first
    }
}

fn plain<const TWO: bool>(words: &[u64], hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |sum, hash| sum.wrapping_add(read_key::<TWO>(words, *hash)))
}

fn prefetched<const TWO: bool, const FIRST: bool>(words: &[u64], hashes: &[u64]) -> u64 {
    let len = words.len();
    let mut sum = 0_u64;
    let ahead = hashes.iter().skip(AHEAD);
    for (hash, later) in hashes.iter().zip(ahead) {
        prefetch::<FIRST>(words, index(*later, len));
        if TWO {
            prefetch::<FIRST>(words, second(*later, len));
        }
        sum = sum.wrapping_add(read_key::<TWO>(words, *hash));
    }
    sum.wrapping_add(plain::<TWO>(words, &hashes[hashes.len().saturating_sub(AHEAD)..]))
}

#[inline(always)]
fn prefetch<const FIRST: bool>(words: &[u64], index: usize) {
    let _address = words.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let address = _address.cast::<i8>();
        // SAFETY: a prefetch of any address neither faults nor accesses memory in Rust's model.
        unsafe { if FIRST { _mm_prefetch::<_MM_HINT_T0>(address) } else { _mm_prefetch::<_MM_HINT_T1>(address) } };
    }
}

fn gathered(words: &[u64], two: bool, hashes: &[u64]) -> u64 {
    assert!(has_gather(), "no gather instructions");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the features are there.
    return unsafe {
        if two { x86_64::gathered::<true>(words, hashes) } else { x86_64::gathered::<false>(words, hashes) }
    };
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{two} {} {}", words.len(), hashes.len())
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_i64gather_epi64, _mm512_loadu_si512, _mm512_mul_epu32,
        _mm512_reduce_add_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srli_epi64,
    };

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn gathered<const TWO: bool>(words: &[u64], hashes: &[u64]) -> u64 {
        let len = _mm512_set1_epi64(words.len() as i64);
        let gather = |halves: __m512i| {
            let indices = _mm512_srli_epi64::<32>(_mm512_mul_epu32(halves, len));
            // SAFETY: the indices are below the length, as in `index`.
            unsafe { _mm512_i64gather_epi64::<8>(indices, words.as_ptr().cast()) }
        };
        let mut sums = _mm512_setzero_si512();
        let groups = hashes.chunks_exact(8);
        let rest = groups.remainder();
        for group in groups {
            // SAFETY: a group has eight words; no alignment is needed.
            let hashes = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
            sums = _mm512_add_epi64(sums, gather(_mm512_srli_epi64::<32>(hashes)));
            if TWO {
                sums = _mm512_add_epi64(sums, gather(hashes));
            }
        }
        (_mm512_reduce_add_epi64(sums) as u64).wrapping_add(super::plain::<TWO>(words, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_read_the_same() {
        let array = Array::new(1 << 16, true).unwrap();
        for count in [0, 1, 7, 8, 31, 32, 33, 1000] {
            let hashes: Vec<u64> = (0..count).map(crate::keys::present).collect();
            for two in [false, true] {
                let plain = array.read(Way::Plain, two, &hashes);
                for way in Way::available() {
                    assert_eq!(array.read(way, two, &hashes), plain, "{way:?} {two} {count}");
                }
            }
        }
    }
}

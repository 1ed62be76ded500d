//! Snapshots as `docs/format.md` describes them, read and repaired without the crate's own code.

#![allow(dead_code, reason = "each test uses a part")]

use xxhash_rust::xxh3::xxh3_64;

pub(crate) const HEADER: usize = 96;
const CHUNK: usize = 1 << 16;

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Words of the payload: in the Bloom family, of kinds 3 on, the field says it, else it is doubled. `None` where that overflows.
pub(crate) fn words(bytes: &[u8]) -> Option<u64> {
    let (kind, doublings) = (bytes[10], u32::from(bytes[12]));
    let words = word(bytes, 16);
    if kind >= 3 { Some(words) } else { words.checked_shl(doublings).filter(|all| *all >> doublings == words) }
}

/// Where the payload begins.
pub(crate) fn payload_at(bytes: &[u8]) -> usize {
    HEADER + 8 * (8 * words(bytes).unwrap() as usize).div_ceil(CHUNK)
}

/// Makes all checksums right, so that what was changed before is not noticed by them.
pub(crate) fn reseal(bytes: &mut [u8]) {
    let payload_at = payload_at(bytes);
    let (front, payload) = bytes.split_at_mut(payload_at);
    for (index, chunk) in payload.chunks(CHUNK).enumerate() {
        put(front, HEADER + 8 * index, xxh3_64(chunk));
    }
    reseal_header(bytes, payload_at);
}

fn reseal_header(bytes: &mut [u8], payload_at: usize) {
    let list = xxh3_64(&bytes[HEADER..payload_at]);
    put(bytes, 80, list);
    seal_header(bytes);
}

/// Makes the checksum of the header right, and leaves the rest.
pub(crate) fn seal_header(bytes: &mut [u8]) {
    let checksum = xxh3_64(&bytes[..88]);
    put(bytes, 88, checksum);
}

pub(crate) fn mix(mut x: u64) -> u64 {
    for _ in 0..2 {
        x ^= x >> 32;
        x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    x ^ x >> 32
}

/// A reader written after the description alone: whether a hash may be in.
pub(crate) fn contains(bytes: &[u8], hash: u64) -> bool {
    let (slots, doublings) = (u32::from(bytes[11]), u32::from(bytes[12]));
    let (base, seed) = (word(bytes, 16), word(bytes, 24));
    let width = 60 / slots;
    let mixed = mix(hash ^ mix(seed ^ 0x9e37_79b9_7f4a_7c15));
    let home = ((u128::from(mixed) * u128::from(base)) >> 64) as u64;
    let fingerprint = 1 + (((mixed & 0xffff_ffff) * ((1 << (width - 1)) - 1)) >> 32);
    let small = fingerprint as u32;
    let spread = small.wrapping_mul(small.wrapping_mul(0x9e37_79b2).wrapping_add(0x85eb_ca77));
    let spread = (u64::from(spread) * base) >> 32 | (1 - base % 2);
    let away = (spread + base - home) % base;
    let bucket = |base: u64| (base << doublings) + (fingerprint >> (width - 1 - doublings));
    let holds = |bucket: u64, slot: u64| {
        let word = word(bytes, payload_at(bytes) + 8 * bucket as usize);
        (0..slots).any(|lane| word >> (lane * width) & ((1 << width) - 1) == slot)
    };
    holds(bucket(home), fingerprint << 1) || holds(bucket(away), fingerprint << 1 | 1)
}

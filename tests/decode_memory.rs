//! What promises much and brings little makes nothing large: a header with checksums that are right, and hardly anything behind it. Alone in its process, whose memory it looks at.

#![cfg(all(feature = "std", target_os = "linux"))]

mod common;
#[path = "common/sealed.rs"]
mod sealed;

use std::io::Write;

use common::status;
use koel::{
    CuckooFilter, DecodeError, FilterRef, LoadError,
    bloom::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, ScalableCountingBloomFilter},
};
use sealed::{HEADER, put, seal_header};

/// Small blocks come from what the process has already; the least of the promised tables has four times as much.
const SLACK: usize = 2 << 20;

/// A snapshot cut off behind its header and `more` bytes, whose header says that there are so many words.
fn promise(snapshot: &[u8], words: u64, more: usize) -> Vec<u8> {
    let mut bytes = snapshot[..HEADER].to_vec();
    put(&mut bytes, 16, words);
    seal_header(&mut bytes);
    bytes.resize(HEADER + more, 0);
    bytes
}

/// What a way of reading says of bytes.
type Read = fn(&[u8]) -> Option<DecodeError>;

/// From a slice and from a reader.
macro_rules! ways {
    ($($filter:ident),*) => {
        [$((
            $filter::<u64>::with_capacity(100).to_bytes(),
            vec![
                |bytes: &[u8]| $filter::<u64>::from_bytes(bytes).err(),
                |bytes: &[u8]| $filter::<u64>::read_from(bytes).err().map(decode_error),
            ] as Vec<Read>,
        )),*]
    };
}

fn decode_error(error: LoadError) -> DecodeError {
    match error {
        LoadError::Decode(error) => error,
        error => panic!("{error}"),
    }
}

/// From a file, whose length is known.
fn load(bytes: &[u8]) -> Option<DecodeError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    CuckooFilter::<u64>::load(file.path()).err().map(decode_error)
}

#[test]
fn memory_follows_what_came_not_what_was_promised() {
    let mut kinds =
        ways!(CuckooFilter, BloomFilter, CountingBloomFilter, ScalableBloomFilter, ScalableCountingBloomFilter);
    kinds[0].1.extend([
        load as Read,
        |bytes| FilterRef::<u64>::new(bytes).err(),
        |bytes| FilterRef::<u64>::new_unverified(bytes).err(),
    ]);
    let before = status("VmPeak:");
    let mut refused = 0;
    for (snapshot, ways) in &kinds {
        for words in (20..32).map(|bits| 1_u64 << bits) {
            for more in [0, 24, 1000] {
                let bytes = promise(snapshot, words, more);
                for read in ways {
                    let error = read(&bytes).expect("too short");
                    assert!(matches!(error, DecodeError::TooShort { .. }), "{words} words: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!(refused, (5 * 2 + 3) * 12 * 3);
    let grown = status("VmPeak:") - before;
    assert!(grown < SLACK, "{grown} bytes more at the peak");
}

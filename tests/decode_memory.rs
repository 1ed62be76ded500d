//! What promises much and brings little makes nothing large: a header with checksums that are right, and hardly anything behind it. Alone in its process, whose memory it looks at.

#![cfg(all(feature = "std", target_os = "linux"))]

mod common;
#[path = "common/sealed.rs"]
mod sealed;

use std::io::Write;

use common::status;
use koel::{
    CuckooFilter, DecodeError, FilterRef, LoadError,
    bloom::{BloomFilter, CountingBloomFilter, ScalableBloomFilter},
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

fn is_too_short(error: &DecodeError) -> bool {
    matches!(error, DecodeError::TooShort { .. })
}

#[test]
fn memory_follows_what_came_not_what_was_promised() {
    let snapshots = [
        CuckooFilter::<u64>::with_capacity(100).to_bytes(),
        BloomFilter::<u64>::with_capacity(100).to_bytes(),
        CountingBloomFilter::<u64>::with_capacity(100).to_bytes(),
        ScalableBloomFilter::<u64>::with_capacity(100).to_bytes(),
    ];
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let before = status("VmPeak:");
    let mut refused = 0;
    for (kind, snapshot) in snapshots.iter().enumerate() {
        for words in (20..32).map(|bits| 1_u64 << bits) {
            for more in [0, 24, 1000] {
                let bytes = promise(snapshot, words, more);
                let errors = match kind {
                    0 => [
                        CuckooFilter::<u64>::from_bytes(&bytes).map(drop),
                        FilterRef::<u64>::new(&bytes).map(drop),
                        FilterRef::<u64>::new_unverified(&bytes).map(drop),
                    ]
                    .to_vec(),
                    1 => vec![BloomFilter::<u64>::from_bytes(&bytes).map(drop)],
                    2 => vec![CountingBloomFilter::<u64>::from_bytes(&bytes).map(drop)],
                    _ => vec![ScalableBloomFilter::<u64>::from_bytes(&bytes).map(drop)],
                };
                for error in errors {
                    let error = error.unwrap_err();
                    assert!(is_too_short(&error), "{words} words: {error}");
                }
                let error = match kind {
                    0 => CuckooFilter::<u64>::read_from(&bytes[..]).map(drop),
                    1 => BloomFilter::<u64>::read_from(&bytes[..]).map(drop),
                    2 => CountingBloomFilter::<u64>::read_from(&bytes[..]).map(drop),
                    _ => ScalableBloomFilter::<u64>::read_from(&bytes[..]).map(drop),
                };
                let error = error.unwrap_err();
                assert!(matches!(&error, LoadError::Decode(error) if is_too_short(error)), "{words} words: {error}");
                file.as_file_mut().set_len(0).unwrap();
                std::io::Seek::rewind(file.as_file_mut()).unwrap();
                file.write_all(&bytes).unwrap();
                if kind == 0 {
                    let error = CuckooFilter::<u64>::load(file.path()).unwrap_err();
                    assert!(
                        matches!(&error, LoadError::Decode(error) if is_too_short(error)),
                        "{words} words: {error}"
                    );
                }
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 4 * 12 * 3);
    let grown = status("VmPeak:") - before;
    assert!(grown < SLACK, "{grown} bytes more at the peak");
}

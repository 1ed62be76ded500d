//! Snapshots from streams, checked while they arrive.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, fmt};
use std::io::{self, Read};

use super::{
    Head,
    error::DecodeError,
    header::{HEADER, Sizes},
    payload::{self, CHUNK, Check},
};
use crate::{memory::try_boxed, table::Table};

/// Why a filter could not be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// Reading failed.
    Io(io::Error),
    /// What was read is not a snapshot that can be used.
    Decode(DecodeError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Decode(error) => Some(error),
        }
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DecodeError> for LoadError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// A stream, and how much of it was read.
struct Stream<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Stream<R> {
    /// Whether nothing follows.
    fn is_at_end(&mut self) -> io::Result<bool> {
        loop {
            match self.reader.read(&mut [0]) {
                Ok(len) => return Ok(len == 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// As much of a buffer as the stream has; `expected` bytes are to come in all.
    fn fill(&mut self, mut buffer: &mut [u8], expected: u64) -> Result<(), LoadError> {
        while !buffer.is_empty() {
            match self.reader.read(buffer) {
                Ok(0) => return Err(DecodeError::TooShort { len: self.read, expected }.into()),
                Ok(len) => {
                    self.read += len as u64;
                    // A reader that says it has read more than it was asked for is wrong; nothing else is to come of it.
                    buffer = buffer.get_mut(len..).ok_or_else(|| io::Error::other("a reader that reads too much"))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn alloc(bytes: usize) -> DecodeError {
    DecodeError::Alloc { bytes: bytes as u64 }
}

/// How a snapshot stands in a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Something may follow, which is not read.
    Prefix,
    /// Nothing follows, and it is not known how long it is.
    All,
    /// Nothing follows, and so many bytes are to come.
    Known(u64),
}

/// Reads a snapshot. Memory grows with what arrives, unless it is known how much does.
///
/// As [`decode`](super::decode) otherwise.
pub(crate) fn decode<H: Head, A>(
    reader: impl Read,
    extent: Extent,
    accept: impl FnOnce(&H) -> Result<A, DecodeError>,
) -> Result<(H, Table, A), LoadError> {
    let mut stream = Stream { reader, read: 0 };
    let mut head = [0; HEADER];
    stream.fill(&mut head, HEADER as u64)?;
    let header = H::decode(&head)?;
    let accepted = accept(&header)?;
    let sizes = header.sizes();
    if let Extent::Known(len) = extent {
        sizes.check(len)?;
    }
    let checksums = list(&mut stream, sizes)?;
    header.check_list(&checksums)?;
    let table = match extent {
        Extent::Known(_) => {
            let mut table = Table::to_fill(sizes.words()?).map_err(DecodeError::from)?;
            let mut rest = table.words_mut().iter_mut();
            chunks(&mut stream, sizes, &checksums, |words| {
                rest.by_ref().zip(words).for_each(|(word, bytes)| word.set(u64::from_le_bytes(*bytes)));
                Ok(())
            })?;
            table
        }
        Extent::Prefix | Extent::All => {
            let mut parts: Vec<Box<[u64]>> = Vec::new();
            chunks(&mut stream, sizes, &checksums, |words| {
                let mut words = words.iter().map(|bytes| u64::from_le_bytes(*bytes));
                parts.try_reserve(1).map_err(|_| alloc(size_of_val(&*parts)))?;
                parts.push(try_boxed(words.len(), || words.next().unwrap_or(0)).map_err(DecodeError::from)?);
                Ok(())
            })?;
            let mut table = Table::to_fill(sizes.words()?).map_err(DecodeError::from)?;
            // A part at a time: each is given back when it is in the table.
            let words = parts.into_iter().flatten();
            table.words_mut().iter_mut().zip(words).for_each(|(word, read)| word.set(read));
            table
        }
    };
    if extent == Extent::All && !stream.is_at_end()? {
        return Err(DecodeError::TrailingBytes { len: stream.read + 1, expected: sizes.total() }.into());
    }
    let mut audit = header.check()?;
    audit.look_at(payload::of_table(&table))?;
    audit.finish(payload::of_table(&table))?;
    Ok((header, table, accepted))
}

/// The list of checksums: at most some megabytes, or for each of 64 layers. Grows with what comes.
fn list(stream: &mut Stream<impl Read>, sizes: Sizes) -> Result<Vec<u8>, LoadError> {
    let mut list = Vec::new();
    let bytes = sizes.payload_at() - HEADER;
    while list.len() < bytes {
        let (start, next) = (list.len(), bytes.min(list.len() + CHUNK));
        list.try_reserve(next - start).map_err(|_| alloc(next))?;
        list.resize(next, 0);
        stream.fill(&mut list[start..], sizes.total())?;
    }
    Ok(list)
}

/// Hands over the words of each chunk after it was checked.
fn chunks(
    stream: &mut Stream<impl Read>,
    sizes: Sizes,
    checksums: &[u8],
    mut take: impl FnMut(&[[u8; 8]]) -> Result<(), DecodeError>,
) -> Result<(), LoadError> {
    let mut buffer = alloc::vec![0; CHUNK];
    let mut left = 8 * sizes.words()?;
    for chunk in 0.. {
        if left == 0 {
            break;
        }
        let bytes = &mut buffer[..left.min(CHUNK)];
        stream.fill(bytes, sizes.total())?;
        payload::check_chunk(chunk, bytes, checksums)?;
        take(bytes.as_chunks().0)?;
        left -= bytes.len();
    }
    Ok(())
}

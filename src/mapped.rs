//! [`MappedFilter`]: a snapshot in a file that is mapped into memory.

use std::{fs::File, path::Path};

use memmap2::Mmap;

use crate::{DecodeError, FilterView, LoadError, StableBuildHasher, Xxh3};

/// A snapshot in a mapped file: see [`FilterView`]. The system reads its pages when they are first looked at, and shares them among processes.
///
/// ```
/// use koel::{CuckooFilter, MappedFilter};
///
/// let filter = CuckooFilter::<str>::with_capacity(100);
/// filter.insert("oak").unwrap();
/// let path = std::env::temp_dir().join(format!("koel-mapped-{}", std::process::id()));
/// filter.save(&path)?;
/// // SAFETY: nobody changes the file; to save again would replace it, and the map would keep the old one.
/// let mapped = unsafe { MappedFilter::<str>::open(&path) }?;
/// assert!(mapped.contains("oak") && !mapped.contains("elm"));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type MappedFilter<T, S = Xxh3> = FilterView<Mmap, T, S>;

impl<T: ?Sized, S: StableBuildHasher> FilterView<Mmap, T, S> {
    /// Maps a file, which is a snapshot and nothing else.
    ///
    /// # Complexity
    ///
    /// That of [`new_unverified`](Self::new_unverified): reads the first page. [`verify`](Self::verify) reads all, and finds damage.
    ///
    /// # Errors
    ///
    /// [`LoadError::Io`] if the file cannot be mapped, and those of [`new_unverified`](Self::new_unverified).
    ///
    /// # Safety
    ///
    /// While it is mapped nobody may change the file or make it shorter, in this process or another. What [`save`](crate::CuckooFilter::save) does is harmless: it never
    /// writes into a file that is there, it replaces the file by a new one.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            // Which cannot be mapped everywhere.
            return Err(DecodeError::TooShort { len: 0, expected: 96 }.into());
        }
        // SAFETY: the caller's promise: the file does not change.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self::new_unverified(map)?)
    }
}

//! Snapshots in files, which are replaced as a whole.
//!
//! # Protocol of saving
//!
//! 1. A new file in the same directory is written, and synchronised with the disk.
//! 2. It is renamed to the file's name: a step that the system does whole or not at all.
//! 3. The directory is synchronised, so that the new name outlives a failure of the machine.
//!
//! Whatever happens in between, under the file's name there is the old file or the new one. What a process leaves that is killed before the second step is a file
//! of another name, which nobody reads.

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
};

/// Replaces a file by one with these bytes.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_file() => Some(old),
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is something else than a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // The file that a symbolic link names is replaced, not the link.
    let path = if old.is_some() { &fs::canonicalize(path)? } else { path };
    let temporary = Temporary::beside(path)?;
    if let Some(old) = old {
        temporary.file.set_permissions(old.permissions())?;
    }
    (&temporary.file).write_all(bytes)?;
    temporary.file.sync_all()?;
    temporary.replace(path)
}

/// A file that is removed on drop, unless it has got its name.
struct Temporary {
    path: Option<PathBuf>,
    file: File,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Self> {
        /// So that the threads of a process use different names.
        static SAVED: AtomicU64 = AtomicU64::new(0);
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
        }
        loop {
            // Relaxed: only that the numbers differ matters. Not the file's name and more, which may be too long.
            let number = SAVED.fetch_add(1, Ordering::Relaxed);
            let path = path.with_file_name(format!(".koel-{}-{number}.new", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path: Some(path), file }),
                // What another process of this number left.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn replace(mut self, path: &Path) -> io::Result<()> {
        let Some(temporary) = &self.path else { return Ok(()) };
        fs::rename(temporary, path)?;
        self.path = None;
        sync_directory(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It failed already; that this fails too changes nothing.
            let _ = fs::remove_file(path);
        }
    }
}

/// Only Unix has directories that can be opened.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

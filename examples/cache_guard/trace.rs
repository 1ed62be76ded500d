//! The trace: a CSV line for each sampled request.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{Result, guard::Reply};

/// A file that all threads write to.
pub(crate) struct Trace {
    file: Mutex<BufWriter<File>>,
    path: PathBuf,
    seed: u64,
}

impl Trace {
    pub(crate) fn create(path: &Path, seed: u64) -> Result<Self> {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let trace = Self { file: Mutex::new(BufWriter::new(file)), path: path.to_owned(), seed };
        trace.append("generation,seed,answer,source,nanoseconds\n")?;
        Ok(trace)
    }

    /// Adds a line to those that a thread has collected, to be [appended](Self::append) at once.
    pub(crate) fn line(&self, lines: &mut String, filtered: bool, reply: Reply, latency: Duration) {
        let (answer, source) = match reply {
            Reply::FilterAbsent => ("absent", "filter"),
            Reply::StoreHit => (if filtered { "maybe" } else { "-" }, "store-hit"),
            Reply::StoreMiss => (if filtered { "maybe" } else { "-" }, "store-miss"),
        };
        // The filter of this example has a fixed size: it is always generation 0.
        let _ = writeln!(lines, "0,{},{answer},{source},{}", self.seed, latency.as_nanos());
    }

    pub(crate) fn append(&self, lines: &str) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(lines.as_bytes()).map_err(|error| failed(&self.path, &error).into())
    }

    /// Writes what is still in the buffer.
    pub(crate) fn finish(self) -> Result<()> {
        let mut file = self.file.into_inner().unwrap_or_else(PoisonError::into_inner);
        file.flush().map_err(|error| failed(&self.path, &error).into())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write the trace to {}: {error}", path.display())
}

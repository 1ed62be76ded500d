//! `cargo run --release -p koel-bench -- --help`

use std::{
    env, io,
    process::{Command, ExitCode},
};

use clap::Parser;
use koel_bench::{machine, options::Args, run};

/// Makes the C library ask for huge pages for large blocks, so that the peers' tables, which come from the heap, get what koel asks for itself.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// Counts how often this program has begun again.
const RESTARTS: &str = "KOEL_BENCH_RESTARTS";
/// glibc 2.36 compares the system's setting with a string that it does not terminate, and thus misreads it every other time.
const MOST_RESTARTS: u32 = 20;

fn main() -> ExitCode {
    let args = Args::parse();
    let settings = match args.settings() {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    if settings.huge_pages && !machine::heap_has_huge_pages() {
        let restarts = env::var(RESTARTS).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        if restarts < MOST_RESTARTS {
            // The tunable is read when a process starts. Where that does not work, go on without; the report tells.
            let _ = restart(restarts + 1);
        }
    }
    match run(&settings) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => failed(&error),
    }
}

/// Replaces this process by the same with huge pages for the heap. Returns only if that fails.
fn restart(restarts: u32) -> io::Error {
    let Ok(program) = env::current_exe() else { return io::ErrorKind::NotFound.into() };
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(TUNABLES.0, TUNABLES.1).env(RESTARTS, restarts.to_string());
    #[cfg(target_os = "linux")]
    return std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(target_os = "linux"))]
    io::ErrorKind::Unsupported.into()
}

fn failed(error: &str) -> ExitCode {
    eprintln!("koel-bench: {error}");
    ExitCode::from(2)
}

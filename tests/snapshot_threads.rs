//! Snapshots while other threads work, writers that use the filter themselves, and processes that are killed while they save.
#![cfg(feature = "std")]

#[cfg(unix)]
use std::path::Path;
use std::{
    io::{self, Write},
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Duration,
};

use koel::{CuckooFilter, FilterRef};

mod common;
use common::{Random, mixed};

/// Snapshots to be taken under load: 100, unless KOEL_SNAPSHOT_ROUNDS says otherwise.
fn rounds() -> u64 {
    std::env::var("KOEL_SNAPSHOT_ROUNDS").map_or(100, |rounds| rounds.parse().expect("a number"))
}

/// Tells the other threads to stop when it is dropped, also by a test that fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A nearly full filter, in which other keys come and go by relocations.
fn crowded(buckets: usize, slots: usize) -> (CuckooFilter<u64>, u64) {
    let builder = CuckooFilter::<u64>::builder().capacity(buckets * slots * 9 / 10).slots_per_bucket(slots);
    let filter = builder.seed(1).build().unwrap();
    let resident = (filter.buckets() as f64 * slots as f64 * 0.82) as u64;
    (0..resident).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
    (filter, resident)
}

/// Inserts and removes keys of its own at the edge of what fits, until it is told to stop.
fn churn(filter: &CuckooFilter<u64>, thread: u64, stop: &AtomicBool) {
    let mut random = Random::new(thread);
    let room = filter.buckets() * filter.slots_per_bucket() / 20;
    let mut keys = Vec::new();
    while !stop.load(Relaxed) {
        if keys.len() >= room.max(1) {
            let gone = keys.swap_remove(random.below(keys.len() as u64) as usize);
            assert!(filter.remove_hash(gone), "a present key was not removed");
        }
        let key = mixed(thread << 40 | random.below(1 << 30));
        if filter.insert_hash(key).is_ok() {
            keys.push(key);
        }
    }
}

/// Every key whose insert returned before the call is in, and the snapshot is one that loads: all its counts are exact.
#[test]
fn no_completed_key_is_missing_while_keys_are_kicked() {
    for (slots, buckets) in [(2, 600), (3, 2_000), (4, 60), (4, 20_000), (6, 1_000)] {
        let (filter, resident) = crowded(buckets, slots);
        let stop = AtomicBool::new(false);
        let present = AtomicU64::new(0);
        let late = |key: u64| mixed(1 << 50 | key);
        std::thread::scope(|scope| {
            for thread in 1..3 {
                let (filter, stop) = (&filter, &stop);
                scope.spawn(move || churn(filter, thread, stop));
            }
            // Keys that stay, one by one.
            scope.spawn(|| {
                for key in 0..(filter.buckets() * slots / 100) as u64 {
                    while filter.insert_hash(late(key)).is_err() {
                        if stop.load(Relaxed) {
                            return;
                        }
                        std::thread::yield_now();
                    }
                    present.store(key + 1, Release);
                    std::thread::sleep(Duration::from_micros(20));
                }
            });
            let _stop = Stop(&stop);
            for _ in 0..rounds() {
                let known = present.load(Acquire);
                let bytes = filter.to_bytes();
                let view = FilterRef::<u64>::new(&bytes).unwrap();
                view.verify().unwrap();
                let hashes: Vec<u64> = (0..resident).map(mixed).chain((0..known).map(late)).collect();
                let mut found = vec![false; hashes.len()];
                view.contains_hashes(&hashes, &mut found);
                assert!(found.iter().all(|found| *found), "a completed key is missing");
                assert!(hashes.iter().step_by(11).all(|hash| view.contains_hash(*hash)));
                let owned = view.to_owned().unwrap();
                assert!(hashes.iter().all(|hash| owned.remove_hash(*hash)), "a present key is not removed");
            }
        });
        assert!(filter.stats().relocations > 0);
    }
}

#[cfg(feature = "growth")]
#[test]
fn no_completed_key_is_missing_while_the_filter_grows() {
    use koel::GrowableCuckooFilter;

    let rounds = rounds();
    let mut drained = 0;
    let mut round = 0;
    while round < rounds {
        let builder = GrowableCuckooFilter::<u64>::builder().max_capacity(400_000).false_positive_rate(0.001);
        let filter = builder.seed(round).build().unwrap();
        let present = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for key in 0..350_000 {
                    filter.insert_hash(mixed(key)).unwrap();
                    present.store(key + 1, Release);
                    if stop.load(Relaxed) {
                        break;
                    }
                }
                stop.store(true, Relaxed);
            });
            scope.spawn(|| {
                let mut batch = 0;
                while !stop.load(Relaxed) {
                    let hashes: Vec<u64> = (0..100).map(|i| mixed((1 << 50) + batch * 100 + i)).collect();
                    filter.insert_hashes(&hashes).unwrap();
                    let mut removed = [false; 100];
                    filter.remove_hashes(&hashes, &mut removed);
                    assert_eq!(removed, [true; 100]);
                    batch += 1;
                }
            });
            let _stop = Stop(&stop);
            while !stop.load(Relaxed) && round < rounds {
                let known = present.load(Acquire);
                drained += u64::from(filter.is_draining());
                let bytes = filter.to_bytes();
                let view = FilterRef::<u64>::new(&bytes).unwrap();
                view.verify().unwrap();
                let hashes: Vec<u64> = (0..known).map(mixed).collect();
                let mut found = vec![false; hashes.len()];
                view.contains_hashes(&hashes, &mut found);
                assert!(found.iter().all(|found| *found), "a completed key is missing");
                round += 1;
            }
        });
    }
    assert!(drained > 0 || rounds < 100, "no snapshot was taken of a filter that was draining");
}

/// A writer that takes its time, and changes the filter between any two bytes in all ways that wait for snapshots.
#[test]
fn a_writer_may_use_the_filter() {
    struct Slow<'a> {
        filter: &'a CuckooFilter<u64>,
        key: u64,
        bytes: Vec<u8>,
    }

    impl Write for Slow<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let before = self.filter.stats().relocations;
            while self.filter.stats().relocations == before {
                let hash = mixed(self.key);
                self.key += 1;
                if self.filter.insert_hash(hash).is_ok() {
                    assert!(self.filter.remove_hash(hash));
                }
            }
            std::thread::sleep(Duration::from_micros(100));
            let some = &bytes[..bytes.len().min(64)];
            self.bytes.extend_from_slice(some);
            Ok(some.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let (filter, resident) = crowded(500, 4);
    (0..).map(|key| mixed(1 << 41 | key)).take(200).for_each(|hash| filter.insert_hash(hash).unwrap());
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let filter = &filter;
            scope.spawn(move || {
                let mut slow = Slow { filter, key: (3 + writer) << 42, bytes: Vec::new() };
                filter.write_to(&mut slow).unwrap();
                let again = CuckooFilter::<u64>::from_bytes(&slow.bytes).unwrap();
                assert!((0..resident).all(|key| again.contains_hash(mixed(key))));
            });
        }
    });
}

/// A snapshot that cannot be written leaves everything as it was.
#[test]
fn failed_writers_and_wrong_paths_are_errors() {
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let (filter, _) = crowded(500, 4);
    assert_eq!(filter.write_to(Full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    let dir = tempfile::tempdir().unwrap();
    assert!(filter.save(dir.path()).is_err(), "a directory");
    assert!(filter.save(dir.path().join("none").join("file")).is_err());
    assert!(filter.save("/").is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    // The gate is open.
    let full = (0..).map(|key| mixed(1 << 43 | key)).take_while(|hash| filter.insert_hash(*hash).is_ok()).count();
    assert!(full > 0);
}

/// What is replaced is the file's content: its permissions and the links to it stay; names may be as long as the system has them.
#[cfg(unix)]
#[test]
fn saving_keeps_permissions_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("n".repeat(255)), dir.path().join("link"));
    let (filter, _) = crowded(100, 4);
    filter.save(&file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    filter.insert_hash(mixed(1 << 44)).unwrap();
    filter.save(&link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read(&file).unwrap(), filter.to_bytes());
    assert!(filter.save("/dev/null").is_err(), "not a file");
}

#[test]
fn saved_filters_load() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filter.koel");
    let (filter, resident) = crowded(20_000, 4);
    filter.save(&path).unwrap();
    filter.insert_hash(mixed(1 << 44)).unwrap();
    filter.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "replaced");
    let again = CuckooFilter::<u64>::load(&path).unwrap();
    assert!(again.words().eq(filter.words()));
    assert!((0..resident).all(|key| again.contains_hash(mixed(key))));
    // A file is a snapshot and nothing else; a stream may go on.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(filter.to_bytes());
    std::fs::write(&path, &bytes).unwrap();
    assert!(CuckooFilter::<u64>::load(&path).is_err());
    let mut stream = &bytes[..];
    for _ in 0..2 {
        assert!(CuckooFilter::<u64>::read_from(&mut stream).unwrap().words().eq(filter.words()));
    }
    assert!(stream.is_empty());
    #[cfg(feature = "mmap")]
    {
        filter.save(&path).unwrap();
        // SAFETY: the test alone knows the file.
        let mapped = unsafe { koel::MappedFilter::<u64>::open(&path) }.unwrap();
        mapped.verify().unwrap();
        // The map stays that of the file that was replaced.
        CuckooFilter::<u64>::with_capacity(1).save(&path).unwrap();
        assert!((0..resident).all(|key| mapped.contains_hash(mixed(key))));
        std::fs::write(&path, "").unwrap();
        // SAFETY: as above.
        assert!(unsafe { koel::MappedFilter::<u64>::open(&path) }.is_err());
    }
}

/// Set in the process that is to be killed: the file that it saves again and again.
#[cfg(unix)]
const SAVES: &str = "KOEL_TEST_SAVES";

/// A process that does nothing but save, two different filters in turn, is killed at some moment: the file is always one of the two.
#[cfg(unix)]
#[test]
fn killed_while_saving() {
    let filter = |keys: u64| {
        let filter = CuckooFilter::<u64>::builder().capacity(40_000).seed(1).build().unwrap();
        (0..keys).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
        filter
    };
    if let Some(path) = std::env::var_os(SAVES) {
        let (some, all) = (filter(20_000), filter(40_000));
        std::fs::write(Path::new(&path).with_extension("ready"), "").unwrap();
        loop {
            some.save(&path).unwrap();
            all.save(&path).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("filter.koel");
    let some = filter(20_000);
    let start = std::time::Instant::now();
    some.save(&path).unwrap();
    // Long enough for some saves, on however slow a machine.
    let saves = 8 * start.elapsed().as_micros() as u64;
    let mut random = Random::new(1);
    let mut seen = [0, 0];
    for _ in 0..30 {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed_while_saving"])
            .env(SAVES, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let ready = path.with_extension("ready");
        while std::fs::remove_file(&ready).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "it saves until it is killed");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.below(saves)));
        // SIGKILL.
        process.kill().unwrap();
        process.wait().unwrap();
        let loaded = CuckooFilter::<u64>::load(&path).unwrap();
        let keys = loaded.len() as u64;
        assert!(keys == 20_000 || keys == 40_000);
        assert!((0..keys).all(|key| loaded.contains_hash(mixed(key))));
        seen[usize::from(keys == 40_000)] += 1;
    }
    println!("the smaller one {} times, the larger one {} times", seen[0], seen[1]);
    assert!(seen[1] > 0, "never saved before it was killed");
}

//! What the machine is, as far as the system tells, and its pages.

use serde::Serialize;

use koel::Backend;

use crate::peers::{self, Plan};

/// For the report's head.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many threads run at once.
    pub cores: usize,
    /// Sizes of the caches, as the system writes them.
    pub caches: String,
    /// Memory in all.
    pub memory: String,
    /// When the system gives huge pages.
    pub huge_pages: String,
    /// What koel's batches run on.
    pub backend: String,
    /// System and architecture.
    pub system: String,
}

impl Machine {
    /// Of this process.
    pub fn this() -> Self {
        let unknown = || "unknown".to_string();
        Self {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            caches: caches().unwrap_or_else(unknown),
            memory: field("/proc/meminfo", "MemTotal").unwrap_or_else(unknown),
            huge_pages: std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
                .map_or_else(|_| unknown(), |text| text.trim().to_string()),
            backend: Backend::ALL
                .into_iter()
                .rev()
                .find(|backend| backend.is_available())
                .map_or_else(unknown, |backend| format!("{backend:?}")),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// The value of the first line `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn caches() -> Option<String> {
    let read = |index: u32, name: &str| {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
        std::fs::read_to_string(file).ok().map(|text| text.trim().to_string())
    };
    let caches: Vec<String> = (0..8)
        .filter_map(|index| Some((read(index, "level")?, read(index, "type")?, read(index, "size")?)))
        .filter(|(_, kind, _)| kind != "Instruction")
        .map(|(level, _, size)| format!("L{level} {size}"))
        .collect();
    (!caches.is_empty()).then(|| caches.join(", "))
}

/// The shares of a table of `bytes` that lie in huge pages: of a koel filter's, which asks for them itself, and of one from the heap, where the
/// peers' are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HugePageShares {
    /// Of koel's table.
    pub koel: f64,
    /// Of a vector.
    pub heap: f64,
}

/// Builds the two and looks; `None` where the system does not tell.
pub fn huge_page_shares(bytes: u64) -> Option<HugePageShares> {
    let bytes = bytes.clamp(2 << 20, 64 << 20);
    let share = |before: u64, after: u64| (after.saturating_sub(before) as f64 / bytes as f64).min(1.0);
    let before = huge_page_bytes()?;
    let mut filter = peers::koel::table(&Plan { bytes, keys: 0, huge_pages: true }, 4).ok()?;
    filter.clear();
    let between = huge_page_bytes()?;
    let heap = std::hint::black_box(vec![1_u8; bytes as usize]);
    let after = huge_page_bytes()?;
    drop((filter, heap));
    Some(HugePageShares { koel: share(before, between), heap: share(between, after) })
}

/// Whether large blocks of the heap lie in huge pages; `true` where the system does not tell or has none, as nothing can be done about it.
pub fn heap_has_huge_pages() -> bool {
    const BYTES: usize = 16 << 20;
    let Some(before) = huge_page_bytes() else { return true };
    let block = std::hint::black_box(vec![1_u8; BYTES]);
    let after = huge_page_bytes().unwrap_or(before);
    drop(block);
    after.saturating_sub(before) > BYTES as u64 / 2
}

/// How many bytes of this process lie in huge pages now.
fn huge_page_bytes() -> Option<u64> {
    let value = field("/proc/self/smaps_rollup", "AnonHugePages")?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

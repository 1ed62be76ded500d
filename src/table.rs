//! The table: a fixed array of words. All large allocation happens here, with huge pages where they are asked for.
//!
//! A table starts as zero bytes, which is a table of empty buckets, so that fresh pages from the system need no writing.
//! It is aligned to cache lines: eight buckets share one, no bucket straddles two.
//!
//! Under loom the words are built one by one, since loom's atomics cannot come from zero bytes.

use crate::{memory::AllocError, sync::AtomicWord};

#[cfg(not(loom))]
pub(crate) use real::{Scratch, Table};

/// Asks for the cache line of an address; no effect but speed.
///
/// Into the second-level cache: AMD's Zen drops prefetches into the first level while its two dozen misses are under way, those into the second
/// it queues (measured: batches in a table of 64 MiB run twice as fast). From there a word is read in a few cycles, which overlap.
#[inline(always)]
pub(crate) fn prefetch<T>(_address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of any address neither faults nor accesses memory in Rust's model.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(_address.cast::<i8>()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address neither faults nor accesses memory in Rust's model.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) _address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(loom))]
mod real {
    #[cfg(feature = "std")]
    use core::sync::atomic::{AtomicUsize, Ordering};
    use core::{
        alloc::Layout,
        fmt,
        marker::PhantomData,
        ops::{Deref, DerefMut},
        ptr::NonNull,
    };

    use super::{AllocError, AtomicWord};

    const CACHE_LINE: usize = 64;

    /// Tables from this size on are mapped even without huge pages: the heap writes zeros to the whole of an aligned block at once, which for a large
    /// table takes far longer than any insert should; a map's pages come one by one.
    #[cfg(feature = "std")]
    const MAPPED_BYTES: usize = 256 << 10;

    /// Tables that are filled at once have huge pages from this size on, if the system has them: they take no more memory then (but for the last), and making small ones
    /// would take longer than all the rest.
    const HUGE_BYTES: usize = 8 << 20;

    /// How the pages of a map are had.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Pages {
        /// One by one, as they are written to.
        Small,
        /// Likewise, but large ones, if the system has them.
        Huge,
        /// All of them beforehand, which takes a fraction of the time of one by one.
        AtOnce,
    }

    pub(crate) struct Table {
        words: NonNull<AtomicWord>,
        len: usize,
        memory: Memory,
    }

    /// Where the words come from, hence how they are returned.
    enum Memory {
        Heap(Layout),
        /// Kept for its drop, which unmaps the words.
        #[cfg(feature = "std")]
        Map(alloc::boxed::Box<[Map; 1]>),
    }

    /// A map and its record: one, elsewhere. In the filter itself the count would be memory that changes behind `&` of the whole of it, and the compiler would read all that
    /// a look-up needs anew for each key: 15 instructions more.
    #[cfg(feature = "std")]
    struct Map {
        map: memmap2::MmapMut,
        #[cfg(feature = "growth")]
        huge_pages: bool,
        /// Bytes that the system was given back.
        returned: AtomicUsize,
    }

    /// Bytes that are given back at a time: for pages of both sizes some microseconds of work.
    #[cfg(feature = "growth")]
    const fn slice(huge_pages: bool) -> usize {
        if huge_pages { 2 << 20 } else { 64 << 10 }
    }

    // SAFETY: a table owns its words, which are atomics and may be used from any thread through `&`.
    unsafe impl Send for Table {}
    // SAFETY: as above; `&Table` gives out only `&AtomicWord`.
    unsafe impl Sync for Table {}

    impl Table {
        /// A table of `len` empty words; `len` is not 0.
        pub(crate) fn new(len: usize, huge_pages: bool) -> Result<Self, AllocError> {
            Self::with_pages(len, if huge_pages { Pages::Huge } else { Pages::Small })
        }

        /// The same, all of which is going to be written right away.
        pub(crate) fn to_fill(len: usize) -> Result<Self, AllocError> {
            Self::with_pages(len, if len >= HUGE_BYTES / size_of::<AtomicWord>() { Pages::Huge } else { Pages::AtOnce })
        }

        fn with_pages(len: usize, pages: Pages) -> Result<Self, AllocError> {
            let bytes = len.saturating_mul(size_of::<AtomicWord>());
            #[cfg(feature = "std")]
            if pages == Pages::Huge || bytes >= MAPPED_BYTES {
                return Self::in_map(len, bytes, pages);
            }
            #[cfg(not(feature = "std"))]
            let _ = pages;
            Self::on_heap(len, bytes)
        }

        /// The same in a map, however small it is; only on the heap if it is small and no map is to be had.
        #[cfg(feature = "growth")]
        pub(crate) fn new_mapped(len: usize, huge_pages: bool) -> Result<Self, AllocError> {
            let bytes = len.saturating_mul(size_of::<AtomicWord>());
            Self::in_map(len, bytes, if huge_pages { Pages::Huge } else { Pages::Small })
        }

        #[cfg(feature = "std")]
        fn in_map(len: usize, bytes: usize, pages: Pages) -> Result<Self, AllocError> {
            match Self::mapped(len, bytes, pages) {
                Some(table) => Ok(table),
                None if bytes < MAPPED_BYTES => Self::on_heap(len, bytes),
                // The heap might still have so much, but would write zeros to all of it.
                None => Err(AllocError { bytes }),
            }
        }

        fn on_heap(len: usize, bytes: usize) -> Result<Self, AllocError> {
            let error = AllocError { bytes };
            let layout = Layout::from_size_align(bytes, CACHE_LINE).map_err(|_| error)?;
            assert!(layout.size() != 0);
            // SAFETY: the layout's size is not 0.
            let words = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) }).ok_or(error)?;
            Ok(Self { words: words.cast(), len, memory: Memory::Heap(layout) })
        }

        /// A table in an anonymous map, for which huge pages are asked if wanted (Linux: `madvise`; elsewhere plain pages).
        #[cfg(feature = "std")]
        fn mapped(len: usize, bytes: usize, pages: Pages) -> Option<Self> {
            let mut options = memmap2::MmapOptions::new();
            if pages == Pages::AtOnce {
                options.populate();
            }
            let mut map = options.len(bytes).map_anon().ok()?;
            #[cfg(target_os = "linux")]
            if pages == Pages::Huge {
                // Only advice: a system without huge pages refuses it and serves small ones.
                let _ = map.advise(memmap2::Advice::HugePage);
            }
            // Maps are aligned to pages and zero.
            let words = NonNull::new(map.as_mut_ptr())?.cast();
            let map = crate::memory::try_box(Map {
                map,
                #[cfg(feature = "growth")]
                huge_pages: pages == Pages::Huge,
                returned: AtomicUsize::new(0),
            });
            Some(Self { words, len, memory: Memory::Map(map.ok()?) })
        }

        /// In how many parts the memory can be given back; 0 if it cannot before drop.
        #[cfg(feature = "growth")]
        pub(crate) fn slices(&self) -> usize {
            match &self.memory {
                Memory::Map(mapped) if cfg!(target_os = "linux") => {
                    let [Map { map, huge_pages, .. }] = &**mapped;
                    (self.words.addr().get() % slice(*huge_pages) + map.len()).div_ceil(slice(*huge_pages))
                }
                _ => 0,
            }
        }

        /// Gives a part of the memory back to the system. The table goes on being there, and these words read as zeros from now on, or from a moment soon after. If one
        /// is written to all the same the system makes a page for it again.
        #[cfg(feature = "growth")]
        pub(crate) fn give_back(&self, index: usize) {
            #[cfg(target_os = "linux")]
            if let Memory::Map(mapped) = &self.memory {
                let [Map { map, huge_pages, returned }] = &**mapped;
                let slice = slice(*huge_pages);
                // Slices begin at multiples of their length, as huge pages do.
                let before = self.words.addr().get() % slice;
                let start = (index * slice).saturating_sub(before);
                let len = ((index + 1) * slice - before).min(map.len()) - start;
                // SAFETY: for the words this is as if another thread stored zeros, and they are atomics; nothing refers to the map but by them.
                let done = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
                if done.is_ok() {
                    // Relaxed: a statistic.
                    returned.fetch_add(len, Ordering::Relaxed);
                }
            }
            #[cfg(not(target_os = "linux"))]
            let _ = index;
        }

        #[inline(always)]
        pub(crate) fn words(&self) -> &[AtomicWord] {
            // SAFETY: `words` points to `len` words that were zero bytes at first, a valid value of this transparent
            // wrapper around an integer, and that are only accessed as atomics until drop.
            unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.len) }
        }

        pub(crate) fn words_mut(&mut self) -> &mut [AtomicWord] {
            // SAFETY: as in `words`, and `&mut self` is exclusive.
            unsafe { core::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) }
        }

        /// Asks for the cache line of this word; no effect but speed.
        #[inline(always)]
        pub(crate) fn prefetch(&self, index: usize) {
            debug_assert!(index < self.len);
            super::prefetch(self.words.as_ptr().wrapping_add(index));
        }

        /// Empties all buckets, of a table that nobody else is using.
        pub(crate) fn reset(&self) {
            self.words().iter().for_each(AtomicWord::reset);
        }

        /// Bytes taken from the system.
        pub(crate) fn memory_bytes(&self) -> usize {
            match &self.memory {
                Memory::Heap(layout) => layout.size(),
                #[cfg(feature = "std")]
                Memory::Map(mapped) => {
                    let [Map { map, returned, .. }] = &**mapped;
                    (map.len() - returned.load(Ordering::Relaxed)).next_multiple_of(4096) + size_of::<Map>()
                }
            }
        }
    }

    impl Drop for Table {
        fn drop(&mut self) {
            match &self.memory {
                // SAFETY: the words came from the global allocator with this layout; nobody uses them after drop.
                Memory::Heap(layout) => unsafe {
                    alloc::alloc::dealloc(self.words.as_ptr().cast(), *layout);
                },
                #[cfg(feature = "std")]
                Memory::Map(_) => {}
            }
        }
    }

    /// Numbers that are worked on for a while, by one thread, in memory like that of a table that is filled at once: where they lie anywhere in many megabytes, huge pages save most
    /// of the time.
    pub(crate) struct Scratch<T> {
        table: Table,
        len: usize,
        numbers: PhantomData<T>,
    }

    /// What can be made of zero bytes, and has no alignment that words have not.
    pub(crate) trait Number: Copy {}
    impl Number for u8 {}
    impl Number for u64 {}

    impl<T: Number> Scratch<T> {
        /// Zeros.
        pub(crate) fn new(len: usize) -> Result<Self, AllocError> {
            let in_word = size_of::<AtomicWord>() / size_of::<T>();
            Ok(Self { table: Table::to_fill(len.div_ceil(in_word).max(1))?, len, numbers: PhantomData })
        }
    }

    impl<T: Number> Deref for Scratch<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            // SAFETY: the table has the memory, of zero bytes at first, which are numbers. It is private here, and nobody refers to its words.
            unsafe { core::slice::from_raw_parts(self.table.words.as_ptr().cast(), self.len) }
        }
    }

    impl<T: Number> DerefMut for Scratch<T> {
        fn deref_mut(&mut self) -> &mut [T] {
            // SAFETY: as in `deref`, and `&mut self` is exclusive.
            unsafe { core::slice::from_raw_parts_mut(self.table.words.as_ptr().cast(), self.len) }
        }
    }

    impl fmt::Debug for Table {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Table").field("len", &self.len).finish_non_exhaustive()
        }
    }
}

#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Table {
    words: alloc::boxed::Box<[AtomicWord]>,
}

#[cfg(loom)]
impl Table {
    pub(crate) fn new(len: usize, _huge_pages: bool) -> Result<Self, AllocError> {
        Ok(Self { words: crate::memory::try_boxed(len, AtomicWord::new)? })
    }

    pub(crate) fn to_fill(len: usize) -> Result<Self, AllocError> {
        Self::new(len, false)
    }

    pub(crate) fn words(&self) -> &[AtomicWord] {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [AtomicWord] {
        &mut self.words
    }

    pub(crate) fn reset(&self) {
        self.words.iter().for_each(AtomicWord::reset);
    }

    pub(crate) fn prefetch(&self, _index: usize) {}

    #[cfg(feature = "growth")]
    pub(crate) fn new_mapped(len: usize, huge_pages: bool) -> Result<Self, AllocError> {
        Self::new(len, huge_pages)
    }

    #[cfg(feature = "growth")]
    pub(crate) fn slices(&self) -> usize {
        1
    }

    /// As the system does, which takes care that whoever sees a zero of its own sees all that was done before.
    #[cfg(feature = "growth")]
    pub(crate) fn give_back(&self, _index: usize) {
        self.words.iter().for_each(AtomicWord::give_back);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

/// Numbers that are worked on for a while.
#[cfg(loom)]
pub(crate) struct Scratch<T>(alloc::boxed::Box<[T]>);

#[cfg(loom)]
impl<T: Copy + Default> Scratch<T> {
    pub(crate) fn new(len: usize) -> Result<Self, AllocError> {
        Ok(Self(crate::memory::try_boxed(len, T::default)?))
    }
}

#[cfg(loom)]
impl<T> core::ops::Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(loom)]
impl<T> core::ops::DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Scratch, Table};

    #[test]
    fn scratch_memory_is_zero_and_its_own() {
        for len in [0, 1, 7, 8, 9, 300_000, 9 << 20] {
            let (mut bytes, mut numbers) =
                (Scratch::<u8>::new(len).unwrap(), Scratch::<u64>::new(len.min(1 << 20)).unwrap());
            assert_eq!((bytes.len(), numbers.len()), (len, len.min(1 << 20)));
            assert!(bytes.iter().all(|byte| *byte == 0) && numbers.iter().all(|number| *number == 0));
            bytes.fill(7);
            numbers.fill(u64::MAX);
            assert!(bytes.iter().all(|byte| *byte == 7) && numbers.iter().all(|number| *number == u64::MAX));
        }
    }

    #[test]
    fn fresh_tables_are_zero_and_aligned() {
        for huge_pages in [false, true] {
            for len in [1, 2, 7, 8, 9, 4096, 300_000] {
                let table = Table::new(len, huge_pages).unwrap();
                assert_eq!(table.words().len(), len);
                assert_eq!(table.words().as_ptr().addr() % 64, 0);
                assert!(table.words().iter().all(|word| word.load() == 0));
                assert!(table.memory_bytes() >= len * 8);
                (0..len).for_each(|index| table.prefetch(index));
            }
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        let mut sizes = alloc::vec![usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 + 1];
        // Where addresses have 32 bits, two gibibytes may well be had.
        if usize::BITS == 64 {
            sizes.push(isize::MAX as usize / 8);
        }
        for len in sizes {
            for huge_pages in [false, true] {
                assert!(Table::new(len, huge_pages).is_err(), "{len}");
            }
        }
    }
}

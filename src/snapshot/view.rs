//! [`FilterView`]: look-ups straight in the bytes of a snapshot, by the code that looks up in filters.

use alloc::vec::Vec;
use core::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
};

use super::{
    Head,
    error::DecodeError,
    hasher::{self, StableBuildHasher},
    header::{HEADER, Header, Kind},
    payload::{self, Audit, Check},
};
use crate::{
    CuckooFilter, Xxh3,
    batch::{self, Backend, check_lengths},
    cells::Cells,
    hash::{Geometry, Only},
    raw::is_cached,
    sizing,
    words::{Frozen, Readable, Snapshot},
};

/// A snapshot in borrowed bytes: see [`FilterView`].
///
/// ```
/// use koel::{CuckooFilter, FilterRef};
///
/// let filter = CuckooFilter::<str>::with_capacity(100);
/// filter.insert("oak").unwrap();
/// let bytes = filter.to_bytes();
/// let view = FilterRef::<str>::new(&bytes)?;
/// assert!(view.contains("oak") && !view.contains("elm"));
/// # Ok::<(), koel::DecodeError>(())
/// ```
pub type FilterRef<'a, T, S = Xxh3> = FilterView<&'a [u8], T, S>;

/// A filter that is read in the bytes of its snapshot, where they are: no copy, any alignment, of filters of both types.
///
/// `B` is whatever holds the bytes: a slice ([`FilterRef`]), a memory map (`MappedFilter`, feature `mmap`), a `Vec<u8>`, an `Arc<[u8]>`. As long as it exists the bytes must not change.
///
/// [`new`](Self::new) checks everything, once. [`new_unverified`](Self::new_unverified) checks the header and the sizes alone, which takes no longer for a large snapshot
/// than for a small one: for bytes that something else vouches for, or to be followed by [`verify`](Self::verify) when there is time. Until then a damaged payload gives wrong
/// answers, also `false` for keys that are in; never anything worse.
///
/// # Progress and complexity
///
/// Look-ups are wait-free, since nothing changes; otherwise they are those of [`CuckooFilter`].
pub struct FilterView<B, T: ?Sized, S = Xxh3> {
    bytes: B,
    header: Header,
    geometry: Geometry,
    hasher: S,
    keys: PhantomData<fn(&T)>,
}

impl<B: AsRef<[u8]>, T: ?Sized, S: StableBuildHasher> FilterView<B, T, S> {
    /// The filter in these bytes, which are a snapshot and nothing else. Its hasher is restored from what the snapshot says of it.
    ///
    /// # Complexity
    ///
    /// That of [`verify`](Self::verify): reads everything.
    ///
    /// # Errors
    ///
    /// A [`DecodeError`] that names the field of the header, the chunk or the bucket, and what is wrong with it.
    ///
    /// ```
    /// use koel::{DecodeError, FilterRef};
    ///
    /// let error = FilterRef::<u64>::new(b"koel").unwrap_err();
    /// assert_eq!(error, DecodeError::TooShort { len: 4, expected: 96 });
    /// ```
    pub fn new(bytes: B) -> Result<Self, DecodeError> {
        let view = Self::new_unverified(bytes)?;
        view.verify().map(|()| view)
    }

    /// As [`new`](Self::new), but looks at the header and the sizes alone.
    ///
    /// # Complexity
    ///
    /// Constant.
    ///
    /// # Errors
    ///
    /// A [`DecodeError`] that names the field of the header and what is wrong with it.
    ///
    /// ```
    /// let mut bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// *bytes.last_mut().unwrap() ^= 1;
    /// assert!(koel::FilterRef::<u64>::new(&bytes).is_err());
    /// let view = koel::FilterRef::<u64>::new_unverified(&bytes)?;
    /// assert!(view.verify().is_err());
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn new_unverified(bytes: B) -> Result<Self, DecodeError> {
        let header = Header::decode(bytes.as_ref())?;
        let hasher = hasher::restored(header.hasher)?;
        Self::from_parts(bytes, header, hasher)
    }

    /// As [`new`](Self::new), with a given hasher: for types that cannot make one from what a snapshot says of it.
    ///
    /// # Complexity
    ///
    /// That of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new); [`DecodeError::OtherHasher`] if it is not the hasher that the keys were hashed with.
    ///
    /// ```
    /// use koel::{CuckooFilter, DecodeError, FilterRef, Xxh3};
    ///
    /// let bytes = CuckooFilter::<u64>::with_capacity(1).to_bytes();
    /// let error = FilterRef::<u64>::with_hasher(&bytes, Xxh3::with_seed(5)).unwrap_err();
    /// assert_eq!(error, DecodeError::OtherHasher { field: "hash seed", stored: 0, given: 5 });
    /// ```
    pub fn with_hasher(bytes: B, hasher: S) -> Result<Self, DecodeError> {
        let view = Self::with_hasher_unverified(bytes, hasher)?;
        view.verify().map(|()| view)
    }

    /// As [`new_unverified`](Self::new_unverified), with a given hasher.
    ///
    /// # Complexity
    ///
    /// Constant.
    ///
    /// # Errors
    ///
    /// Those of [`new_unverified`](Self::new_unverified); [`DecodeError::OtherHasher`] if it is not the hasher that the keys were hashed with.
    ///
    /// ```
    /// use koel::{CuckooFilter, FilterRef, Xxh3};
    ///
    /// let bytes = CuckooFilter::<u64>::with_capacity(1).to_bytes();
    /// assert!(FilterRef::<u64>::with_hasher_unverified(&bytes, Xxh3::new()).is_ok());
    /// ```
    pub fn with_hasher_unverified(bytes: B, hasher: S) -> Result<Self, DecodeError> {
        let header = Header::decode(bytes.as_ref())?;
        let hasher = hasher::checked(header.hasher, hasher)?;
        Self::from_parts(bytes, header, hasher)
    }

    fn from_parts(bytes: B, header: Header, hasher: S) -> Result<Self, DecodeError> {
        header.sizes().check(bytes.as_ref().len() as u64)?;
        // Whatever is in memory can be addressed.
        Ok(Self { bytes, header, geometry: header.geometry(), hasher, keys: PhantomData })
    }

    /// A filter of its own with what this one holds, which can be changed.
    ///
    /// # Progress and complexity
    ///
    /// That of [`CuckooFilter::from_bytes`].
    ///
    /// # Errors
    ///
    /// Those of [`CuckooFilter::from_bytes`], such as [`DecodeError::OtherKind`] for the snapshot of a filter that grows.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// let bytes = filter.to_bytes();
    /// let owned = koel::FilterRef::<u64>::new(&bytes)?.to_owned()?;
    /// owned.insert(&7).unwrap();
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn to_owned(&self) -> Result<CuckooFilter<T, S>, DecodeError>
    where
        S: Clone,
    {
        CuckooFilter::from_bytes_with_hasher(self.bytes.as_ref(), self.hasher.clone())
    }

    /// A growing filter of its own with what this one holds, which can be changed.
    ///
    /// # Progress and complexity
    ///
    /// That of [`GrowableCuckooFilter::from_bytes`](crate::GrowableCuckooFilter::from_bytes).
    ///
    /// # Errors
    ///
    /// Those of [`GrowableCuckooFilter::from_bytes`](crate::GrowableCuckooFilter::from_bytes), such as [`DecodeError::OtherKind`] for the snapshot of a filter
    /// that does not grow.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// let bytes = filter.to_bytes();
    /// let owned = koel::FilterRef::<u64>::new(&bytes)?.to_growable()?;
    /// owned.insert(&7).unwrap();
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    #[cfg(feature = "growth")]
    pub fn to_growable(&self) -> Result<crate::GrowableCuckooFilter<T, S>, DecodeError>
    where
        S: Clone,
    {
        crate::GrowableCuckooFilter::from_bytes_with_hasher(self.bytes.as_ref(), self.hasher.clone())
    }
}

/// Does something with the cells of the table, of whichever type it is.
macro_rules! with_cells {
    ($view:expr, $cells:ident => $work:expr) => {
        match $view.header.kind {
            Kind::Fixed => {
                let $cells = &$view.cells(Snapshot(Only));
                $work
            }
            Kind::Growing => {
                let $cells = &$view.cells(Snapshot($view.header.generation()));
                $work
            }
        }
    };
}

impl<B: AsRef<[u8]>, T: ?Sized, S> FilterView<B, T, S> {
    #[inline(always)]
    fn payload(&self) -> &[[u8; 8]] {
        let sizes = self.header.sizes();
        // Within the bytes, as was checked; checked again, since nobody knows what `as_ref` does.
        let payload = &self.bytes.as_ref()[sizes.payload_at()..sizes.total() as usize];
        payload.as_chunks().0
    }

    #[inline(always)]
    fn cells<'a, G: Readable<Words<'a> = Frozen<'a>>>(&'a self, generation: G) -> Cells<'a, G> {
        Cells { words: Frozen(self.payload()), layout: &self.header.layout, geometry: &self.geometry, generation }
    }

    #[inline(always)]
    fn is_cached(&self) -> bool {
        is_cached(self.header.base << self.header.doublings)
    }

    /// Whether a key with this hash may be in: as [`CuckooFilter::contains_hash`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(1).unwrap();
    /// let bytes = filter.to_bytes();
    /// assert!(koel::FilterRef::<u64>::new(&bytes)?.contains_hash(1));
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let class = self.geometry.class(hash);
        with_cells!(self, cells => {
            if self.is_cached() { cells.contains_both(class) } else { cells.contains_home_first(class) }
        })
    }

    /// [`contains_hash`](Self::contains_hash) for many hashes: `found[i]` tells of `hashes[i]`. As [`CuckooFilter::contains_hashes`], by the same vectors.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let bytes = filter.to_bytes();
    /// let mut found = [false; 3];
    /// koel::FilterRef::<u64>::new(&bytes)?.contains_hashes(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        with_cells!(self, cells => batch::contains(cells, self.is_cached(), hashes, found));
    }

    /// Puts the indices of those hashes that may be in at the end of `selected`, in order: as [`CuckooFilter::select_hashes`].
    ///
    /// # Panics
    ///
    /// If an index does not fit 32 bits: more than 2<sup>32</sup> hashes.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let bytes = filter.to_bytes();
    /// let mut selected = Vec::new();
    /// koel::FilterRef::<u64>::new(&bytes)?.select_hashes(&[1, 2, 3, 2], &mut selected);
    /// assert_eq!(selected, [1, 3]);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn select_hashes(&self, hashes: &[u64], selected: &mut Vec<u32>) {
        with_cells!(self, cells => {
            batch::select(hashes, selected, |hashes, found| batch::contains(cells, self.is_cached(), hashes, found));
        });
    }

    /// [`contains_hashes`](Self::contains_hashes) on a given backend, which has to be available. For this project's own tests.
    #[doc(hidden)]
    pub fn contains_hashes_with(&self, backend: Backend, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        with_cells!(self, cells => batch::contains_with(backend, cells, self.is_cached(), hashes, found));
    }

    /// Checks what [`new_unverified`](Self::new_unverified) leaves unchecked: the checksums of the payload, and that its words are those of a filter. The same is checked where a filter
    /// is made from bytes.
    ///
    /// # Complexity
    ///
    /// Reads everything, twice. Allocates a byte for each bucket, an eighth of the table, for as long as it runs.
    ///
    /// # Errors
    ///
    /// A [`DecodeError`] that names the chunk or the bucket.
    ///
    /// ```
    /// let mut bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// *bytes.last_mut().unwrap() ^= 1;
    /// let view = koel::FilterRef::<u64>::new_unverified(&bytes).unwrap();
    /// assert!(matches!(view.verify(), Err(koel::DecodeError::ChunkChecksum { chunk: 0, .. })));
    /// ```
    pub fn verify(&self) -> Result<(), DecodeError> {
        let payload_at = self.header.sizes().payload_at();
        let checksums = &self.bytes.as_ref()[HEADER..payload_at];
        self.header.check_list(checksums)?;
        let mut audit = Audit::new(&self.header)?;
        for (chunk, bytes) in self.bytes.as_ref()[payload_at..].chunks(payload::CHUNK).enumerate() {
            payload::check_chunk(chunk, bytes, checksums)?;
            audit.look_at(payload::words(bytes))?;
        }
        audit.finish(payload::words(self.payload().as_flattened()))
    }

    /// How many keys are in.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// assert_eq!(koel::FilterRef::<u64>::new(&bytes)?.len(), 0);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.header.keys as usize
    }

    /// Whether no key is in.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// assert!(koel::FilterRef::<u64>::new(&bytes)?.is_empty());
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity that the filter's builder was told; of a filter that grows, the largest.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// assert_eq!(koel::FilterRef::<u64>::new(&bytes)?.capacity(), 100);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.header.capacity
    }

    /// Buckets of the table, each one 64-bit word.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(koel::FilterRef::<u64>::new(&filter.to_bytes())?.buckets(), filter.buckets());
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn buckets(&self) -> usize {
        self.header.base << self.header.doublings
    }

    /// Slots of a bucket, each for one key: 2 to 6.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(koel::FilterRef::<u64>::new(&filter.to_bytes())?.slots_per_bucket(), 4);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn slots_per_bucket(&self) -> usize {
        self.header.layout.slots()
    }

    /// The share of absent keys for which `true` is expected: as [`CuckooFilter::false_positive_rate`].
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// assert_eq!(koel::FilterRef::<u64>::new(&bytes)?.false_positive_rate(), 0.0);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        sizing::false_positive_rate(self.len(), self.header.base, self.header.layout)
    }

    /// The hasher of keys.
    ///
    /// ```
    /// let bytes = koel::CuckooFilter::<u64>::with_capacity(100).to_bytes();
    /// assert_eq!(koel::FilterRef::<u64>::new(&bytes)?.hasher(), &koel::Xxh3::new());
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The seed with which hashes are remixed.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(koel::FilterRef::<u64>::new(&filter.to_bytes())?.seed(), filter.seed());
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn seed(&self) -> u64 {
        self.header.seed
    }
}

impl<B: AsRef<[u8]>, T: ?Sized, S: BuildHasher> FilterView<B, T, S> {
    /// Whether the key may be in: as [`CuckooFilter::contains`].
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// assert!(koel::FilterRef::<u64>::new(&filter.to_bytes())?.contains(&7));
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.contains_hash(self.hash_of(key))
    }

    /// [`contains`](Self::contains) for many keys: `found[i]` tells of `keys[i]`. As [`CuckooFilter::contains_many`].
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("oak").unwrap();
    /// let mut found = [false; 2];
    /// koel::FilterRef::<str>::new(&filter.to_bytes())?.contains_many(&["elm", "oak"], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    pub fn contains_many<K: Borrow<T>>(&self, keys: &[K], found: &mut [bool])
    where
        T: Hash,
    {
        batch::contains_many(
            keys,
            found,
            |key| self.hash_of(key.borrow()),
            |hashes, found| {
                self.contains_hashes(hashes, found);
            },
        );
    }

    /// The hash of a key, for the methods that take one.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(koel::FilterRef::<u64>::new(&filter.to_bytes())?.hash_of(&7), filter.hash_of(&7));
    /// # Ok::<(), koel::DecodeError>(())
    /// ```
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
    {
        self.hasher.hash_one(key)
    }
}

impl<B: Clone, T: ?Sized, S: Clone> Clone for FilterView<B, T, S> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), hasher: self.hasher.clone(), ..*self }
    }
}

impl<B: Copy, T: ?Sized, S: Copy> Copy for FilterView<B, T, S> {}

impl<B, T: ?Sized, S> fmt::Debug for FilterView<B, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterView")
            .field("len", &self.header.keys)
            .field("capacity", &self.header.capacity)
            .field("base_buckets", &self.header.base)
            .field("generation", &self.header.doublings)
            .field("slots_per_bucket", &self.header.layout.slots())
            .finish_non_exhaustive()
    }
}

//! The public methods of all filters that make snapshots and take them in. They are the same, so they are written once.

/// What the documentation says of cuckoo filters, of Bloom filters, and of those of them that count, where it differs.
macro_rules! text_for {
    (cuckoo, progress) => {
        "Waits for other snapshots, and for threads that are changing more than one word: a displaced insert, a kick, a removal of what may be displaced, a step of draining. \
         While it copies the words, such operations wait, in other threads; look-ups never do, nor do inserts and removals that one word decides. Those who waited go before \
         the next snapshot."
    };
    (bloom, progress) => {
        "Waits for nobody, and nobody waits for it. A filter with layers is begun anew if one was added meanwhile: lock-free; else it is wait-free. (But for the allocator.)"
    };
    (counting, progress) => {
        "Waits for other snapshots, and for inserts and removals that have begun. While it is taken inserts and removals wait, in other threads; look-ups never do. Those who waited go before the next snapshot. A filter with layers is begun anew if one was added meanwhile."
    };
    (cuckoo, copying) => {
        "Copies the table, then goes through the copy. A filter that is being drained is drained first."
    };
    ($bloom:ident, copying) => {
        "Copies the table, then goes through the copy."
    };
    (cuckoo, reading) => {
        "Goes through the bytes, and twice through the table. Allocates the filter, and for a while an eighth of its table; nothing before the sizes are known to be those of \
         the bytes."
    };
    ($bloom:ident, reading) => {
        "Goes through the bytes. Allocates the filter, of one with layers for a while twice; nothing before the sizes are known to be those of the bytes. (Layers that it adds later have \
         small pages.)"
    };
    (cuckoo, loading) => {
        "The file is read in pieces: no more memory than for the filter itself."
    };
    ($bloom:ident, loading) => {
        "The file is read in pieces: no more memory than for the filter itself, or if it has layers for a while twice as much."
    };
}

/// The methods for one type of filter, of which `$source` gives what a snapshot is taken of, with a header of type `$header`. Its own method `restored` makes one of a header, a
/// table and a hasher. `$family` chooses the documentation.
macro_rules! snapshot_methods {
    ($family:ident, $filter:ident, $name:literal, $kind:expr, $header:ty, $source:expr) => {
        /// # Snapshots
        ///
        /// A filter as bytes: the same bytes for the same table, on every machine; `docs/format.md` describes them. (The table depends on the order in which keys came,
        /// except in a filter that was built from hashes.) A snapshot taken while other threads work
        /// holds every key whose insert returned before the call and that was not removed since; of what happens meanwhile, some operations, each of them wholly or not at all. (Of a key that
        /// is put into a filter without removal meanwhile it may have some of the bits, which does no harm.)
        impl<T: ?Sized, S: $crate::StableBuildHasher> $filter<T, S> {
            /// Puts a snapshot at the end of `out`.
            ///
            /// # Progress
            ///
            #[doc = $crate::snapshot::methods::text_for!($family, progress)]
            ///
            /// # Complexity
            ///
            #[doc = $crate::snapshot::methods::text_for!($family, copying)]
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let mut bytes = Vec::new();"]
            #[doc = "filter.append_to(&mut bytes);"]
            #[doc = "assert_eq!(bytes.len(), filter.serialized_size());"]
            #[doc = "```"]
            pub fn append_to(&self, out: &mut alloc::vec::Vec<u8>) {
                $crate::snapshot::append(&$source(self), out);
            }

            /// A snapshot.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`append_to`](Self::append_to).
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let _ = filter.insert(&7);"]
            #[doc = concat!("let again = koel::", $name, "::<u64>::from_bytes(&filter.to_bytes())?;")]
            #[doc = "assert!(again.contains(&7));"]
            #[doc = "# Ok::<(), koel::DecodeError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                let mut bytes = alloc::vec::Vec::with_capacity(self.serialized_size());
                self.append_to(&mut bytes);
                bytes
            }

            /// Bytes of a snapshot that is taken now.
            ///
            /// # Progress and complexity
            ///
            /// Wait-free.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "assert_eq!(filter.serialized_size(), filter.to_bytes().len());"]
            #[doc = "```"]
            pub fn serialized_size(&self) -> usize {
                let words = $crate::snapshot::Source::words(&$source(self));
                $crate::snapshot::header::Sizes::of(words as u64).total() as usize
            }

            /// The filter in a snapshot, which is all of `bytes`. Its hasher is restored from what the snapshot says of it.
            ///
            /// # Progress
            ///
            /// Waits for nobody, unless the allocator or the system does.
            ///
            /// # Complexity
            ///
            #[doc = $crate::snapshot::methods::text_for!($family, reading)]
            ///
            /// # Errors
            ///
            /// A [`DecodeError`](crate::DecodeError) that names what is wrong and why. Everything is checked: a filter that was loaded has all its keys.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let mut bytes = filter.to_bytes();"]
            #[doc = concat!("let again = koel::", $name, "::<u64>::from_bytes(&bytes).unwrap();")]
            #[doc = "assert_eq!(again.to_bytes(), bytes);"]
            #[doc = "bytes.push(0);"]
            #[doc = concat!("let error = koel::", $name, "::<u64>::from_bytes(&bytes).unwrap_err();")]
            #[doc = "assert!(matches!(error, koel::DecodeError::TrailingBytes { .. }));"]
            #[doc = "```"]
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::DecodeError> {
                let (header, table, hasher) = $crate::snapshot::decode(bytes, Self::accept)?;
                Self::restored(header, table, hasher)
            }

            /// [`from_bytes`](Self::from_bytes) with a given hasher: for types that cannot make one from what a snapshot says of it.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`from_bytes`](Self::from_bytes).
            ///
            /// # Errors
            ///
            /// Those of [`from_bytes`](Self::from_bytes); [`DecodeError::OtherHasher`](crate::DecodeError::OtherHasher) if it is not the hasher that the keys were
            /// hashed with.
            ///
            #[doc = "```"]
            #[doc = concat!("let bytes = koel::", $name, "::<u64>::with_capacity(100).to_bytes();")]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::from_bytes_with_hasher(&bytes, koel::Xxh3::new()).is_ok());")]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::from_bytes_with_hasher(&bytes, koel::Xxh3::with_seed(1)).is_err());")]
            #[doc = "```"]
            pub fn from_bytes_with_hasher(bytes: &[u8], hasher: S) -> Result<Self, $crate::DecodeError> {
                let accept = |header: &$header| {
                    header.expect($kind)?;
                    $crate::snapshot::hasher::checked(header.hasher, hasher)
                };
                let (header, table, hasher) = $crate::snapshot::decode(bytes, accept)?;
                Self::restored(header, table, hasher)
            }

            /// The hasher, if the snapshot is one of this type.
            fn accept(header: &$header) -> Result<S, $crate::DecodeError> {
                header.expect($kind)?;
                $crate::snapshot::hasher::restored(header.hasher)
            }

            /// Writes a snapshot. It is taken first, as a whole: no operation waits for the writer, which may use the filter itself.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`append_to`](Self::append_to), and of the writer. Takes as much memory as the snapshot has bytes.
            ///
            /// # Errors
            ///
            /// Those of the writer.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let mut bytes = Vec::new();"]
            #[doc = "filter.write_to(&mut bytes)?;"]
            #[doc = concat!("let again = koel::", $name, "::<u64>::read_from(&bytes[..]).unwrap();")]
            #[doc = "assert_eq!(again.to_bytes(), bytes);"]
            #[doc = "# Ok::<(), std::io::Error>(())"]
            #[doc = "```"]
            #[cfg(feature = "std")]
            pub fn write_to(&self, mut writer: impl std::io::Write) -> std::io::Result<()> {
                writer.write_all(&self.to_bytes())
            }

            /// The filter in a snapshot that comes from a reader, of which nothing is read after the snapshot. Each chunk of 64 KiB is checked when it has come.
            ///
            /// # Progress and complexity
            ///
            /// Those of the reader, and of [`from_bytes`](Self::from_bytes). Memory grows with what has come, to twice the table.
            ///
            /// # Errors
            ///
            /// Those of the reader and of [`from_bytes`](Self::from_bytes).
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let bytes = filter.to_bytes();"]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::read_from(&bytes[..]).is_ok());")]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::read_from(&bytes[1..]).is_err());")]
            #[doc = "```"]
            #[cfg(feature = "std")]
            pub fn read_from(reader: impl std::io::Read) -> Result<Self, $crate::LoadError> {
                let (header, table, hasher) = $crate::snapshot::io::decode(reader, $crate::snapshot::io::Extent::Prefix, Self::accept)?;
                Ok(Self::restored(header, table, hasher)?)
            }

            /// Saves a snapshot in a file. It replaces the file that was there as a whole, when all of it is on the disk: after a failure, at any moment,
            /// of the process or the machine, there is the old file or the new one. The new one has the permissions of the old one, and a symbolic link stays one.
            /// (A process that is killed meanwhile may leave a file `.koel-PROCESS-NUMBER.new` beside it.)
            ///
            /// # Progress and complexity
            ///
            /// Those of [`write_to`](Self::write_to), and of the system.
            ///
            /// # Errors
            ///
            /// Those of the system; [`InvalidInput`](std::io::ErrorKind::InvalidInput) if there is something else than a file. If it is the synchronisation of the directory that failed the new file is there already, but may not outlive a failure of the
            /// machine.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::", $name, "::<u64>::with_capacity(100);")]
            #[doc = "let _ = filter.insert(&7);"]
            #[doc = concat!("let path = std::env::temp_dir().join(format!(\"koel-", stringify!($filter), "-{}\", std::process::id()));")]
            #[doc = "filter.save(&path)?;"]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::load(&path).unwrap().contains(&7));")]
            #[doc = "# std::fs::remove_file(path)?;"]
            #[doc = "# Ok::<(), std::io::Error>(())"]
            #[doc = "```"]
            #[cfg(feature = "std")]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
                $crate::snapshot::file::save(path.as_ref(), &self.to_bytes())
            }

            /// The filter in a file, which is a snapshot and nothing else.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`from_bytes`](Self::from_bytes), and of the system.
            #[doc = $crate::snapshot::methods::text_for!($family, loading)]
            ///
            /// # Errors
            ///
            /// Those of the system and of [`from_bytes`](Self::from_bytes).
            ///
            #[doc = "```"]
            #[doc = concat!("assert!(koel::", $name, "::<u64>::load(\"no such file\").is_err());")]
            #[doc = "```"]
            #[cfg(feature = "std")]
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::LoadError> {
                let file = std::fs::File::open(path)?;
                // A pipe, say, has no length.
                let metadata = file.metadata()?;
                let extent = if metadata.is_file() {
                    $crate::snapshot::io::Extent::Known(metadata.len())
                } else {
                    $crate::snapshot::io::Extent::All
                };
                let (header, table, hasher) = $crate::snapshot::io::decode(file, extent, Self::accept)?;
                Ok(Self::restored(header, table, hasher)?)
            }
        }

        #[cfg(feature = "serde")]
        $crate::snapshot::serde::serde_by_bytes!($filter);
    };
}

pub(crate) use {snapshot_methods, text_for};

//! Serialising with serde: a filter is the bytes of its snapshot.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, SeqAccess, Visitor};

/// Serialises and deserialises one type of filter.
macro_rules! serde_by_bytes {
    ($filter:ident) => {
        /// As the bytes of [`to_bytes`](Self::to_bytes).
        impl<T: ?Sized, S: $crate::StableBuildHasher> serde::Serialize for $filter<T, S> {
            fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                serializer.serialize_bytes(&self.to_bytes())
            }
        }

        /// From the bytes of [`to_bytes`](Self::to_bytes).
        impl<'de, T: ?Sized, S: $crate::StableBuildHasher> serde::Deserialize<'de> for $filter<T, S> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let decode = |bytes: &[u8]| Self::from_bytes(bytes);
                deserializer.deserialize_bytes($crate::snapshot::serde::Bytes(decode))
            }
        }
    };
}

pub(crate) use serde_by_bytes;

/// Takes bytes in whatever form a format has them, and decodes them.
pub(crate) struct Bytes<F>(pub(crate) F);

impl<'de, V, F: FnOnce(&[u8]) -> Result<V, crate::DecodeError>> Visitor<'de> for Bytes<F> {
    type Value = V;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter's snapshot")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<V, E> {
        (self.0)(bytes).map_err(E::custom)
    }

    /// Formats without bytes, such as JSON, have a list of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<V, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element::<u8>()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

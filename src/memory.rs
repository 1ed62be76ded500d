//! Small allocations that report failure instead of aborting.

use alloc::{boxed::Box, vec::Vec};

/// So many bytes could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError {
    pub(crate) bytes: usize,
}

/// A value in a box.
pub(crate) fn try_box<T>(value: T) -> Result<Box<[T; 1]>, AllocError> {
    let boxed: Result<Box<[T; 1]>, _> = collected(1, core::iter::once(value))?.try_into();
    Ok(boxed.unwrap_or_else(|_| unreachable!("one value")))
}

/// A boxed slice of `len` values.
pub(crate) fn try_boxed<T>(len: usize, mut value: impl FnMut() -> T) -> Result<Box<[T]>, AllocError> {
    collected(len, (0..len).map(|_| value()))
}

/// These values, of which there are `len`.
fn collected<T>(len: usize, from: impl Iterator<Item = T>) -> Result<Box<[T]>, AllocError> {
    let mut values = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    values.try_reserve_exact(len).map_err(|_| AllocError { bytes })?;
    values.extend(from);
    Ok(values.into_boxed_slice())
}

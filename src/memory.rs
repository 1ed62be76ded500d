//! Small allocations that report failure instead of aborting.

use alloc::{boxed::Box, vec::Vec};

/// So many bytes could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError {
    pub(crate) bytes: usize,
}

/// A value in a box.
pub(crate) fn try_box<T>(value: T) -> Result<Box<[T; 1]>, AllocError> {
    let mut values = Vec::new();
    values.try_reserve_exact(1).map_err(|_| AllocError { bytes: size_of::<T>() })?;
    values.push(value);
    let boxed: Result<Box<[T; 1]>, _> = values.into_boxed_slice().try_into();
    Ok(boxed.unwrap_or_else(|_| unreachable!("one value")))
}

/// A boxed slice of `len` values.
pub(crate) fn try_boxed<T>(len: usize, mut value: impl FnMut() -> T) -> Result<Box<[T]>, AllocError> {
    let mut values = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    values.try_reserve_exact(len).map_err(|_| AllocError { bytes })?;
    values.extend((0..len).map(|_| value()));
    Ok(values.into_boxed_slice())
}

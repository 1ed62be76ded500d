//! A place for a value that is put there once, from any thread, and stays as long as the place does.
//!
//! All unsafe code of scalable filters is here. (`OnceLock` of the standard library may wait, and needs the standard library.)

use alloc::boxed::Box;
use core::{fmt, ptr};

use crate::sync::{AtomicPtr, Ordering};

pub(crate) struct Slot<T> {
    /// Null, or from a `Box` that belongs to the slot. Changes once. (An array of one, as `memory::try_box` makes it.)
    value: AtomicPtr<[T; 1]>,
}

// SAFETY: a slot is an `Option<Box<T>>` that is shared: it gives out `&T` to all threads, and takes and drops `T` in any.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Slot<T> {}

impl<T> Slot<T> {
    pub(crate) fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The value, if it is there.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: all of the value is there. Pairs with the Release in `set`.
        #[cfg(not(loom))]
        let value = self.value.load(Ordering::Acquire);
        // Under loom a read-modify-write, since `set` may follow; see `AtomicWord::peek`.
        #[cfg(loom)]
        let value = match self.value.compare_exchange(
            ptr::dangling_mut(),
            ptr::dangling_mut(),
            Ordering::Acquire,
            Ordering::Acquire,
        ) {
            Ok(value) | Err(value) => value,
        };
        // SAFETY: null, or from `Box::into_raw` in `set`, after which it is neither changed nor dropped while the slot is shared.
        unsafe { value.as_ref() }.map(|[value]| value)
    }

    /// The value, if it is there, of a slot that nobody else is using.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        let value = self.pointer_mut();
        // SAFETY: as in `get`, and `&mut self` is exclusive.
        unsafe { value.as_mut() }.map(|[value]| value)
    }

    /// The pointer, of a slot that nobody else is using.
    fn pointer_mut(&mut self) -> *mut [T; 1] {
        #[cfg(not(loom))]
        return *self.value.get_mut();
        #[cfg(loom)]
        self.value.with_mut(|value| *value)
    }

    /// Puts a value there, unless another was faster.
    pub(crate) fn set(&self, value: Box<[T; 1]>) {
        let new = Box::into_raw(value);
        if mutated!("layer_over_layer") {
            self.value.store(new, Ordering::Release);
            return;
        }
        // Release: pairs with `get`. Relaxed on failure: nothing is read of the other value.
        if self.value.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: from `Box::into_raw` above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }

    /// Drops the value, of a slot that nobody else is using.
    pub(crate) fn empty(&mut self) {
        let value = self.pointer_mut();
        self.value = AtomicPtr::new(ptr::null_mut());
        if !value.is_null() {
            // SAFETY: from `Box::into_raw` in `set`; the slot has forgotten it, and `&mut self` says that nobody has a reference to it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        self.empty();
    }
}

impl<T: fmt::Debug> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

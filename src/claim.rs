//! One flag per stripe of home buckets that makes `insert_if_absent` calls for one class take turns.
//!
//! Only `insert_if_absent` ever claims, once per call, and no user code runs inside: whoever holds a claim waits for relocations that are under way in
//! its stripe, and, if its insert has to, for a snapshot that is being copied; never for another claim. Everything else ignores claims.

use alloc::boxed::Box;

use crossbeam_utils::Backoff;

use crate::{
    memory::{AllocError, try_boxed},
    seq::Stripes,
    sync::{self, AtomicBool, Ordering},
};

#[derive(Debug)]
pub(crate) struct Claims {
    flags: Box<[AtomicBool]>,
    stripes: Stripes,
}

/// A claimed stripe, released on drop.
#[derive(Debug)]
pub(crate) struct Claim<'a>(&'a AtomicBool);

impl Claims {
    pub(crate) fn new(stripes: Stripes) -> Result<Self, AllocError> {
        Ok(Self { flags: try_boxed(stripes.len(), || AtomicBool::new(false))?, stripes })
    }

    /// Waits until no other thread holds the stripe of this home, then holds it.
    pub(crate) fn claim(&self, home: usize) -> Claim<'_> {
        let flag = &self.flags[self.stripes.of(home)];
        if mutated!("insert_without_claim") {
            return Claim(flag);
        }
        let backoff = Backoff::new();
        // Acquire: what the last holder inserted is visible to this one. Pairs with the Release in `drop`. Relaxed on failure: nothing
        // is read before the claim succeeds.
        while flag.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sync::snooze(&backoff);
        }
        Claim(flag)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.flags)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `claim`.
        self.0.store(false, Ordering::Release);
    }
}

//! A store with a filter in front of it, and the order in which the two are changed.
//!
//! The promise: from the return of [`Guard::insert`] until [`Guard::remove`] is called, [`Guard::get`] finds the key.
//!
//! **Insert: store, filter, acknowledge.** Between the commit and the filter's insert a reader may still be told "absent".
//! That is no false negative: nobody has been told yet that the key is in, so such a read counts as earlier than the
//! insert. From the acknowledgement on, both have it. Why not the filter first? Because only the store knows whether the
//! key is new, and the filter, which counts copies, has to take each key exactly once; and because a commit that fails
//! would leave a key in the filter that nobody removes.
//!
//! **Delete: store, filter.** In between a reader is told "maybe", asks the store and finds nothing: a false positive,
//! harmless. The other way round the filter would deny what the store still has, and for good if the commit then failed.
//! And again only the store knows whether the key was there: to remove from the filter what is not in it may take out
//! another key with the same fingerprint.
//!
//! Threads that change *the same key* have to take turns over both steps, with a lock per key, say; otherwise a delete
//! can slip between the two steps of an insert. Here every key that changes belongs to one thread.

use koel::CuckooFilter;

use crate::{Result, store::Store};

/// A store, behind a filter if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'a> {
    pub(crate) store: &'a Store,
    pub(crate) filter: Option<&'a CuckooFilter<str>>,
}

/// The reply to a request, and who gave it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The filter: surely absent. The store was not asked.
    FilterAbsent,
    /// The store has the key.
    StoreHit,
    /// The store has not.
    StoreMiss,
}

impl Guard<'_> {
    pub(crate) fn get(&self, key: &str) -> Result<Reply> {
        if self.filter.is_some_and(|filter| !filter.contains(key)) {
            return Ok(Reply::FilterAbsent);
        }
        Ok(if self.store.read(key)? { Reply::StoreHit } else { Reply::StoreMiss })
    }

    pub(crate) fn insert(&self, key: &str) -> Result<()> {
        let new = self.store.insert(key)?;
        if let Some(filter) = self.filter
            && new
            && let Err(error) = filter.insert(key)
        {
            // A key that the filter has no room for would be denied: take it back rather than acknowledge it.
            self.store.remove(key)?;
            return Err(error.into());
        }
        Ok(())
    }

    pub(crate) fn remove(&self, key: &str) -> Result<()> {
        let was_there = self.store.remove(key)?;
        if let Some(filter) = self.filter
            && was_there
        {
            filter.remove(key);
        }
        Ok(())
    }
}

//! The store behind the filter.

use std::path::Path;

use redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};

use crate::Result;

const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
/// Every key has the same record: the size matters here, not what it says.
const RECORD: &[u8] = &[b'r'; 100];
/// Less than the records of a million keys take, as a store is usually larger than its cache.
const CACHE_BYTES: usize = 64 << 20;

/// A database with one table.
pub(crate) struct Store {
    database: Database,
}

impl Store {
    pub(crate) fn create(file: &Path) -> Result<Self> {
        let database = Builder::new().set_cache_size(CACHE_BYTES).create(file)?;
        let store = Self { database };
        // Opening the table creates it, so that reads find it even before the first insert.
        store.insert_all(&[])?;
        Ok(store)
    }

    /// Whether there is a record of this key. A transaction of its own, to see what was committed up to now.
    pub(crate) fn read(&self, key: &str) -> Result<bool> {
        let table = self.database.begin_read()?.open_table(RECORDS)?;
        Ok(table.get(key)?.is_some())
    }

    /// Whether the key is new: it had no record so far.
    pub(crate) fn insert(&self, key: &str) -> Result<bool> {
        self.change(|table| Ok(table.insert(key, RECORD)?.is_none()))
    }

    /// Whether there was a record of the key.
    pub(crate) fn remove(&self, key: &str) -> Result<bool> {
        self.change(|table| Ok(table.remove(key)?.is_some()))
    }

    pub(crate) fn insert_all(&self, keys: &[String]) -> Result<()> {
        self.change(|table| keys.iter().try_for_each(|key| table.insert(key.as_str(), RECORD).map(drop)))
    }

    /// A write transaction. Its commit is visible at once but not synced to the disk: nothing here outlives the process,
    /// and waiting for the disk at every change would measure the disk.
    fn change<R>(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &str, &[u8]>) -> std::result::Result<R, redb::StorageError>,
    ) -> Result<R> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::None)?;
        let result = change(&mut transaction.open_table(RECORDS)?)?;
        transaction.commit()?;
        Ok(result)
    }
}

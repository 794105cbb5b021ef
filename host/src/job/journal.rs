//! The attempt's record of itself, which several threads change and write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::checkpoint::store::{AttemptRecord, Ended, Store};

/// The record, and where it is kept.
pub struct Journal {
    store: Store,
    record: Mutex<AttemptRecord>,
    /// Held while the record is written: one name, one writer at a time.
    writing: Mutex<()>,
}

impl Journal {
    /// Nothing is written yet.
    #[must_use]
    pub fn new(store: Store, record: AttemptRecord) -> Self {
        Self { store, record: Mutex::new(record), writing: Mutex::new(()) }
    }

    /// Locks the record, to read or change it.
    pub fn record(&self) -> MutexGuard<'_, AttemptRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the record as it is by now; failing that is worth a warning, not the attempt.
    pub fn write(&self) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = {
            let mut record = self.record();
            record.heartbeat = jiff::Timestamp::now().to_string();
            record.clone()
        };
        if let Err(error) = self.store.write_record(&written) {
            tracing::warn!("Cannot write the attempt's record: {error}");
        }
    }

    /// How the attempt will have ended if nothing more is heard of it: a guest that cannot be interrupted leaves nobody the time
    /// to say so later.
    pub fn is_about_to_end(&self, ended: Ended) {
        self.record().ended.get_or_insert(ended);
    }
}

//! Memory as one total: the bytes of all memories and all tables of a guest together.
//!
//! A growth past the limit is refused in the way that WebAssembly knows (`memory.grow` answers -1), so a guest with a plan for
//! that can go on. Most have none and abort; then the refusal, and not the abort, is the cause worth telling.

use wasmtime::{ResourceLimiter, Result};

/// Wasmtime keeps a pointer for each table element.
const TABLE_ELEMENT_BYTES: u64 = size_of::<usize>() as u64;

/// A growth that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The total that the guest would have had.
    pub(super) wanted: u64,
    pub(super) limit: u64,
}

/// The account of one guest.
pub(super) struct MemoryBudget {
    limit: u64,
    used: u64,
    /// The growth granted last, to be taken back should the operating system refuse it.
    granted: u64,
    refused: Option<Refusal>,
}

impl MemoryBudget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, granted: 0, refused: None }
    }

    /// Forgets refusals of earlier calls, which their guest survived.
    pub(super) fn begin_call(&mut self) {
        self.refused = None;
    }

    /// The last refusal in this call, unless a later growth succeeded.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.refused
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    fn grow(&mut self, by: u64) -> bool {
        let wanted = self.used.saturating_add(by);
        if wanted > self.limit {
            self.refused = Some(Refusal { wanted, limit: self.limit });
            return false;
        }
        self.used = wanted;
        self.granted = by;
        self.refused = None;
        true
    }

    fn take_back(&mut self) {
        self.used = self.used.saturating_sub(self.granted);
        self.granted = 0;
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(self.grow(desired.saturating_sub(current) as u64))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let elements = desired.saturating_sub(current) as u64;
        Ok(self.grow(elements.saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        self.take_back();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn memories_and_tables_share_one_total() {
        let mut budget = MemoryBudget::new(1000);
        assert!(budget.memory_growing(0, 400, None).unwrap());
        assert!(budget.memory_growing(0, 400, None).unwrap());
        assert!(budget.table_growing(0, 25, None).unwrap());
        assert_eq!(budget.used(), 1000);
        assert!(!budget.table_growing(25, 26, None).unwrap());
        assert_eq!(budget.refusal(), Some(Refusal { wanted: 1008, limit: 1000 }));
    }

    #[test]
    fn a_growth_that_the_system_refuses_is_not_counted() {
        let mut budget = MemoryBudget::new(1000);
        assert!(budget.memory_growing(0, 600, None).unwrap());
        assert!(budget.memory_growing(600, 1000, None).unwrap());
        budget.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        assert_eq!(budget.used(), 600);
        assert!(budget.memory_growing(600, 1000, None).unwrap());
    }

    #[test]
    fn a_refusal_that_the_guest_survived_is_forgotten() {
        let mut budget = MemoryBudget::new(1000);
        assert!(!budget.memory_growing(0, 2000, None).unwrap());
        assert!(budget.refusal().is_some());
        assert!(budget.memory_growing(0, 10, None).unwrap());
        assert!(budget.refusal().is_none());
        assert!(!budget.memory_growing(10, 2000, None).unwrap());
        budget.begin_call();
        assert!(budget.refusal().is_none());
    }
}

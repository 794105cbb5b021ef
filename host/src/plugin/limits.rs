//! Memory as one total: the bytes of all memories and all tables of a guest together.
//!
//! A growth past the limit is refused in the way that WebAssembly knows (`memory.grow` answers -1), so a guest with a plan for
//! that can go on. Most have none and abort; then the refusal, and not the abort, is the cause worth telling.
//!
//! A growth that was granted stays on the account even if the system then refuses it. wasmtime tells of failed growths, but
//! also of such as it never asked about, since there are no numbers for a size like that: whoever took a grant back for those
//! would let a guest grow without end, one impossible wish after each growth.

use wasmtime::{ResourceLimiter, Result};

/// Wasmtime keeps a pointer for each table element.
const TABLE_ELEMENT_BYTES: u64 = size_of::<usize>() as u64;

/// A growth that did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It did not fit.
    Limit {
        /// The total that the guest would have had.
        wanted: u64,
        limit: u64,
    },
    /// What was to grow can never be so large, whatever the limit.
    Maximum { wanted: u64, maximum: u64 },
    /// Nothing forbids it, but it could not be done.
    Failed(String),
}

/// The account of one guest.
pub(super) struct MemoryBudget {
    limit: u64,
    used: u64,
    refused: Option<Refusal>,
}

impl MemoryBudget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0, refused: None }
    }

    /// Forgets refusals of earlier calls, which their guest survived.
    pub(super) fn begin_call(&mut self) {
        self.refused = None;
    }

    /// The last refusal in this call, unless a later growth succeeded.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.refused.as_ref()
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The most that the guest may ever have.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    fn grow(&mut self, by: u64) -> bool {
        let wanted = self.used.saturating_add(by);
        if wanted > self.limit {
            self.refused = Some(Refusal::Limit { wanted, limit: self.limit });
            return false;
        }
        self.used = wanted;
        self.refused = None;
        true
    }

    /// Whether something may become so large at all. wasmtime compares with the maximum too, but only after it has asked whether
    /// the growth fits, and then something that never comes about would be on the account.
    fn is_possible(&mut self, desired: usize, maximum: Option<usize>, unit: u64) -> bool {
        let bytes = |count: usize| (count as u64).saturating_mul(unit);
        match maximum.filter(|maximum| desired > *maximum) {
            None => true,
            Some(maximum) => {
                self.refused = Some(Refusal::Maximum { wanted: bytes(desired), maximum: bytes(maximum) });
                false
            }
        }
    }

    fn failed(&mut self, error: &wasmtime::Error) {
        self.refused = Some(Refusal::Failed(error.to_string()));
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        Ok(self.is_possible(desired, maximum, 1) && self.grow(desired.saturating_sub(current) as u64))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.failed(&error);
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let elements = desired.saturating_sub(current) as u64;
        let possible = self.is_possible(desired, maximum, TABLE_ELEMENT_BYTES);
        Ok(possible && self.grow(elements.saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.failed(&error);
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
        assert_eq!(budget.refusal(), Some(&Refusal::Limit { wanted: 1008, limit: 1000 }));
    }

    #[test]
    fn a_wish_that_could_never_be_fulfilled_gives_nothing_back() {
        let mut budget = MemoryBudget::new(1000);
        for _ in 0..2 {
            assert!(budget.memory_growing(0, 500, None).unwrap());
            budget.memory_grow_failed(wasmtime::Error::msg("larger than any")).unwrap();
            assert_eq!(budget.refusal(), Some(&Refusal::Failed("larger than any".into())));
        }
        assert_eq!(budget.used(), 1000);
        assert!(!budget.memory_growing(500, 501, None).unwrap());
    }

    #[test]
    fn what_would_pass_its_own_maximum_costs_nothing() {
        let mut budget = MemoryBudget::new(1000);
        assert!((0..100).all(|_| !budget.table_growing(0, 11, Some(10)).unwrap()));
        assert!((0..100).all(|_| !budget.memory_growing(0, 101, Some(100)).unwrap()));
        assert_eq!(budget.refusal(), Some(&Refusal::Maximum { wanted: 101, maximum: 100 }));
        assert!(budget.table_growing(0, 10, Some(10)).unwrap());
        assert_eq!(budget.used(), 80);
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

//! Which operation fails, and how: parsed from the text that a rehearsal hands to its attempts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use rustix::io::Errno;

use super::FAULTS_VARIABLE;

/// How an operation fails. Where a kind makes no sense for the operation that is hit, it is EIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// No space left.
    Enospc,
    /// The disk failed.
    Eio,
    /// Not allowed.
    Eacces,
    /// The file handle is stale.
    Estale,
    /// The mount is gone.
    Enotconn,
    /// A write stores half of its bytes, and the rest finds the disk full.
    ShortWrite,
    /// Closing fails, and half of the file is lost at once.
    FailClose,
    /// Closing fails, and half of the file is lost when the process ends; until then it reads as if it were there.
    LoseClose,
    /// A write stores other bytes than it was given, and succeeds.
    Corrupt,
    /// The process is killed (SIGKILL) where the operation would begin.
    Kill,
}

impl FaultKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::Enospc,
        Self::Eio,
        Self::Eacces,
        Self::Estale,
        Self::Enotconn,
        Self::ShortWrite,
        Self::FailClose,
        Self::LoseClose,
        Self::Corrupt,
        Self::Kill,
    ];

    /// The word in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Enospc => "enospc",
            Self::Eio => "eio",
            Self::Eacces => "eacces",
            Self::Estale => "estale",
            Self::Enotconn => "enotconn",
            Self::ShortWrite => "short-write",
            Self::FailClose => "fail-close",
            Self::LoseClose => "lose-close",
            Self::Corrupt => "corrupt",
            Self::Kill => "kill",
        }
    }

    /// The error of the operation that it hits.
    pub(super) fn error(self) -> io::Error {
        match self {
            Self::Enospc => Errno::NOSPC,
            Self::Eacces => Errno::ACCESS,
            Self::Estale => Errno::STALE,
            Self::Enotconn => Errno::NOTCONN,
            _ => Errno::IO,
        }
        .into()
    }
}

/// Which operations fail, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan(BTreeMap<u64, FaultKind>);

impl FaultPlan {
    /// The plan of `STEADFAST_FAULTS`; an empty one if that is not set.
    pub fn from_env() -> Result<Self, FaultPlanError> {
        match std::env::var_os(FAULTS_VARIABLE) {
            None => Ok(Self::default()),
            Some(text) => text.to_string_lossy().parse(),
        }
    }

    /// The same, and the `number`th operation fails too.
    #[must_use]
    pub fn and(mut self, number: u64, kind: FaultKind) -> Self {
        self.0.insert(number, kind);
        self
    }

    /// Whether nothing fails.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How the `number`th operation fails, counted from 1.
    pub fn at(&self, number: u64) -> Option<FaultKind> {
        self.0.get(&number).copied()
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (number, kind)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{number}:{}", kind.word())?;
        }
        Ok(())
    }
}

impl FromStr for FaultPlan {
    type Err = FaultPlanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut plan = BTreeMap::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let wrong = || FaultPlanError::Item { item: item.to_owned() };
            let (number, word) = item.split_once(':').ok_or_else(wrong)?;
            let number: u64 = number.trim().parse().map_err(|_| wrong())?;
            let kind = FaultKind::ALL.into_iter().find(|kind| kind.word() == word.trim()).ok_or_else(wrong)?;
            if number == 0 || plan.insert(number, kind).is_some() {
                return Err(wrong());
            }
        }
        Ok(Self(plan))
    }
}

/// A plan that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum FaultPlanError {
    /// A part of the text is no `N:kind`, or names an operation twice.
    #[error(
        "`{item}` in STEADFAST_FAULTS is not N:kind, each N from 1 and once, kind one of enospc, eio, eacces, estale, \
         enotconn, short-write, fail-close, lose-close, corrupt, kill"
    )]
    Item {
        /// The part.
        item: String,
    },
    /// The trace cannot be written.
    #[error("cannot open the trace `{}`: {cause}", path.display())]
    Trace {
        /// Where it was to be.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

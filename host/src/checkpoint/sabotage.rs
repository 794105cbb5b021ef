//! Durability rules that a build for tests can switch off one at a time, to prove that the tests notice.
//!
//! Without the cargo feature `sabotage` every rule holds and this compiles to nothing. With it, `STEADFAST_SABOTAGE` names
//! the rules to break, separated by commas.

/// A rule that keeps checkpoints safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the rules of the store are named here before the store uses them")]
pub(crate) enum Rule {
    /// The results of `sync` and `close` are checked. Broken by `close-unchecked`.
    CheckedClose,
    /// A file is closed before it is renamed. Broken by `rename-before-close`.
    CloseBeforeRename,
    /// A checkpoint is trusted only after its hashes matched. Broken by `load-without-hashes`.
    LoadByHashes,
    /// Old checkpoints are deleted only after the new one was read back. Broken by `prune-before-verify`.
    VerifyBeforePrune,
    /// Outputs are durable before the checkpoint that counts them. Broken by `outputs-late`.
    OutputsFirst,
}

/// Whether a rule is switched off.
#[cfg(not(feature = "sabotage"))]
pub(crate) const fn is_off(_rule: Rule) -> bool {
    false
}

/// Whether a rule is switched off.
#[cfg(feature = "sabotage")]
pub(crate) fn is_off(rule: Rule) -> bool {
    static BROKEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let broken = BROKEN.get_or_init(|| std::env::var("STEADFAST_SABOTAGE").unwrap_or_default());
    let name = match rule {
        Rule::CheckedClose => "close-unchecked",
        Rule::CloseBeforeRename => "rename-before-close",
        Rule::LoadByHashes => "load-without-hashes",
        Rule::VerifyBeforePrune => "prune-before-verify",
        Rule::OutputsFirst => "outputs-late",
    };
    broken.split(',').any(|word| word.trim() == name)
}

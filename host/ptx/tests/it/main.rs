//! Whether the translation is right: compared with an oracle, with PTX's own words and with references.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod oracle;
mod random;

//! Why a plugin does not come from, or go to, a registry.

use std::fmt;

use super::reference::Reference;

/// What was asked of which registry, and why it came to nothing.
#[derive(Debug)]
pub struct RegistryError {
    /// What was tried, as a verb: `get` or `push`.
    pub doing: &'static str,
    /// The reference as it was given.
    pub reference: String,
    /// The registry, with its port.
    pub host: String,
    /// Why not.
    pub why: Why,
}

/// Why not. The first two may pass.
#[derive(Debug)]
pub enum Why {
    /// The registry does not answer, or answers that it cannot now.
    Unreachable {
        /// What it came to the last time.
        cause: String,
        /// How often it was asked.
        tries: u32,
    },
    /// What arrives is not what its digest says.
    Damaged {
        /// What is wrong with it.
        cause: String,
        /// How often it was asked for.
        tries: u32,
    },
    /// Whoever asks may not have it.
    Denied {
        /// What the registry says.
        cause: String,
        /// As whom it was asked.
        account: String,
    },
    /// The registry has no such thing.
    Missing {
        /// What the registry says.
        cause: String,
    },
    /// The registry's certificate is not trusted.
    Untrusted {
        /// What is wrong with it.
        cause: String,
    },
    /// It is there, and something else than a plugin.
    NoPlugin {
        /// What it is.
        found: String,
    },
    /// It is more than a plugin may have.
    TooLarge {
        /// How much, and what is allowed.
        found: String,
    },
    /// The registry speaks in a way that is not understood.
    Protocol {
        /// What it says.
        cause: String,
    },
    /// No connection can be made at all: the machine's fault.
    SetUp {
        /// What is missing.
        cause: String,
    },
}

impl RegistryError {
    pub(super) fn new(doing: &'static str, reference: &Reference, why: Why) -> Self {
        let (reference, host) = (reference.as_str().to_owned(), reference.host().to_owned());
        Self { doing, reference, host, why }
    }

    /// Whether another attempt may fare better.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self.why, Why::Unreachable { .. } | Why::Damaged { .. })
    }

    /// What can be done about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let host = &self.host;
        Some(match &self.why {
            Why::Unreachable { .. } => {
                format!("another attempt may reach it; is `{host}` spelled right, up, and reachable from here?")
            }
            Why::Damaged { .. } => {
                "something on the way, or the registry itself, changes or cuts off what it sends; push the plugin again if it stays"
                    .to_owned()
            }
            Why::Denied { .. } => format!(
                "log in with `docker login {host}` or `podman login {host}`, or name the file that holds the credentials: \
                 $REGISTRY_AUTH_FILE, or its folder as $DOCKER_CONFIG"
            ),
            Why::Missing { .. } => {
                "is it spelled right, and was it pushed? `steadfast plugin push FILE oci://HOST/REPOSITORY:TAG` does that".to_owned()
            }
            Why::Untrusted { .. } => {
                "where that certificate is meant, add its authority to the system's, or name a file of roots with $SSL_CERT_FILE"
                    .to_owned()
            }
            Why::NoPlugin { .. } => {
                "a plugin's artifact has one layer of type `application/wasm`, which is the component: \
                 `steadfast plugin push` makes one, and `oras push REFERENCE FILE.wasm:application/wasm`"
                    .to_owned()
            }
            Why::SetUp { .. } => {
                "TLS needs certificates of authorities: install the package ca-certificates, or name a file of roots with $SSL_CERT_FILE"
                    .to_owned()
            }
            Why::TooLarge { .. } | Why::Protocol { .. } => return None,
        })
    }
}

impl std::error::Error for RegistryError {}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { doing, reference, host, why } = self;
        match why {
            Why::NoPlugin { found } | Why::TooLarge { found } => {
                return write!(f, "`{reference}` is not a plugin: {found}");
            }
            Why::SetUp { .. } => write!(f, "cannot speak to a registry")?,
            _ => write!(f, "cannot {doing} the plugin `{reference}`")?,
        }
        match why {
            Why::Unreachable { cause, tries } | Why::Damaged { cause, tries } => {
                write!(f, ": {cause} (tried {tries} times)")
            }
            Why::Denied { cause, account } => write!(f, ": {host} refuses: {cause}; it was asked {account}"),
            Why::Missing { cause } => write!(f, ": {host} does not have it: {cause}"),
            Why::Untrusted { cause } => write!(f, ": the certificate of {host} is not trusted: {cause}"),
            Why::Protocol { cause } | Why::SetUp { cause } => write!(f, ": {cause}"),
            Why::NoPlugin { .. } | Why::TooLarge { .. } => Ok(()),
        }
    }
}

//! One registry, asked for one reference: with the user's credentials, within limits of time, and again while its failure may pass.
//!
//! The client library is asynchronous; nothing around it is. So a runtime of one thread lives here, and only while a call runs.

use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{DigestError, OciDistributionError, OciEnvelope, OciErrorCode};
use oci_client::{Client, Reference as Named, RegistryOperation};
use tokio::runtime::{Builder, Runtime};

use super::credentials::{self, Account};
use super::error::{RegistryError, Why};
use super::reference::Reference;
use crate::platform::process_environment;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a registry may send nothing in the midst of an answer. An answer may take as long as it likes.
const SILENCE: Duration = Duration::from_secs(30);
/// How long it takes before each further try. A registry that is down for longer is a matter for another attempt.
const WAITS: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Of what a registry says beside a failure, so much is repeated.
const MOST_WORDS: usize = 200;

/// A registry, and who asks it.
pub(super) struct Connection {
    operation: RegistryOperation,
    reference: Reference,
    client: Client,
    account: Account,
    runtime: Runtime,
}

/// Why one request failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// It may pass.
    Passing(String),
    /// The content is not what its digest says, which may pass too.
    Damaged(String),
    Denied(String),
    Missing(String),
    Untrusted(String),
    Protocol(String),
}

impl Connection {
    /// Makes ready to ask; nothing is asked yet.
    pub(super) fn open(operation: RegistryOperation, reference: &Reference) -> Result<Self, RegistryError> {
        // A second call finds the first one's provider, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let doing = verb(operation);
        let set_up =
            |cause: &(dyn Error + 'static)| RegistryError::new(doing, reference, Why::SetUp { cause: in_full(cause) });
        let client = Client::try_from(config(reference)).map_err(|cause| set_up(&cause))?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|cause| set_up(&cause))?;
        let account = credentials::find(reference, &process_environment);
        Ok(Self { operation, reference: reference.clone(), client, account, runtime })
    }

    /// Asks until there is an answer, or a failure that does not pass. The request is made for `named`, with the client given, which
    /// knows the account.
    pub(super) fn ask<T>(
        &self,
        named: &Named,
        request: impl AsyncFn(&Client, &Named) -> Result<T, Fault>,
    ) -> Result<T, RegistryError> {
        let doing = verb(self.operation);
        let mut waits = WAITS.iter();
        let mut tries = 1;
        loop {
            let once = async {
                // By itself the library takes a failure to log in for leave to go on as nobody.
                self.client.auth(named, &self.account.auth, self.operation).await?;
                request(&self.client, named).await
            };
            // The library takes some of what a registry says for granted.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.runtime.block_on(once)));
            let outcome = outcome.unwrap_or_else(|_| Err(Fault::Protocol("it cannot be understood".to_owned())));
            let fault = match outcome {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            let (Fault::Passing(cause) | Fault::Damaged(cause), Some(wait)) = (&fault, waits.next()) else {
                return Err(RegistryError::new(doing, &self.reference, self.why(fault, tries)));
            };
            let (reference, seconds) = (&self.reference, wait.as_secs_f32());
            tracing::warn!("Cannot {doing} {reference} yet: {cause}; trying again in {seconds} s");
            std::thread::sleep(*wait);
            tries += 1;
        }
    }

    fn why(&self, fault: Fault, tries: u32) -> Why {
        match fault {
            Fault::Passing(cause) => Why::Unreachable { cause, tries },
            Fault::Damaged(cause) => Why::Damaged { cause, tries },
            Fault::Denied(cause) => Why::Denied { cause, account: self.account.description.clone() },
            Fault::Missing(cause) => Why::Missing { cause },
            Fault::Untrusted(cause) => Why::Untrusted { cause },
            Fault::Protocol(cause) => Why::Protocol { cause },
        }
    }
}

fn config(reference: &Reference) -> ClientConfig {
    let config = ClientConfig {
        connect_timeout: Some(CONNECT),
        read_timeout: Some(SILENCE),
        user_agent: concat!("steadfast/", env!("CARGO_PKG_VERSION")),
        ..ClientConfig::default()
    };
    if !reference.is_loopback() {
        return config;
    }
    // The environment's proxy knows another machine by the name of this one. One that is given here keeps the library from looking
    // for it, and this one is for no host at all, by name or by address.
    let (http_proxy, no_proxy) = (Some("http://localhost".to_owned()), Some("*,0.0.0.0/0,::/0".to_owned()));
    ClientConfig { protocol: ClientProtocol::Http, http_proxy, no_proxy, ..config }
}

fn verb(operation: RegistryOperation) -> &'static str {
    match operation {
        RegistryOperation::Pull => "get",
        RegistryOperation::Push => "push",
    }
}

impl From<OciDistributionError> for Fault {
    fn from(error: OciDistributionError) -> Self {
        use OciDistributionError as E;
        match error {
            E::UnauthorizedError { .. } => Self::Denied("whoever asks has to log in".to_owned()),
            E::AuthenticationFailure(said) => not_let_in(&said),
            E::RegistryError { envelope, .. } => {
                let code = envelope.errors.into_iter().next().map(|error| (error.code, error.message));
                code.map_or_else(
                    || Self::Protocol("a failure without a word".to_owned()),
                    |(code, said)| coded(&code, &said),
                )
            }
            E::ServerError { code, message, .. } => by_status(code, &message),
            E::DigestError(DigestError::VerificationError { expected, actual }) => {
                Self::Damaged(format!("what arrived has the digest {actual}, and not {expected}"))
            }
            E::RequestError(error) => match certificate(&error) {
                Some(cause) => Self::Untrusted(cause),
                None if error.is_builder() || error.is_redirect() => Self::Protocol(in_full(&error)),
                None => Self::Passing(in_full(&error)),
            },
            E::IoError(error) if error.kind() == io::ErrorKind::FileTooLarge => Self::Damaged(error.to_string()),
            E::IoError(error) => Self::Passing(in_full(&error)),
            other => Self::Protocol(words(&other.to_string())),
        }
    }
}

/// What a server of tokens said instead of giving one; the library does not tell its status. One that refuses says why. What comes without a word or
/// as a whole page is from a server in front of it, which has trouble of its own.
fn not_let_in(said: &str) -> Fault {
    match words(&message_in(said)) {
        page if page.is_empty() || page.starts_with('<') => Fault::Passing("the server of tokens fails".to_owned()),
        said => Fault::Denied(said),
    }
}

fn coded(code: &OciErrorCode, said: &str) -> Fault {
    use OciErrorCode as C;
    let said = if said.is_empty() { format!("{code:?}") } else { words(said) };
    match code {
        C::Unauthorized | C::Denied => Fault::Denied(said),
        C::ManifestUnknown | C::ManifestBlobUnknown | C::BlobUnknown | C::NameUnknown | C::NotFound => {
            Fault::Missing(said)
        }
        C::Toomanyrequests => Fault::Passing(said),
        _ => Fault::Protocol(said),
    }
}

fn by_status(status: u16, said: &str) -> Fault {
    // Some answers are whole pages.
    let said = match words(&message_in(said)) {
        page if page.starts_with('<') => format!("status {status}"),
        said if said.is_empty() => format!("status {status}"),
        said => format!("status {status}, {said}"),
    };
    match status {
        401 | 403 => Fault::Denied(said),
        404 | 410 => Fault::Missing(said),
        408 | 425 | 429 | 500..=599 => Fault::Passing(said),
        _ => Fault::Protocol(said),
    }
}

/// The message of a failure as registries write it, if it is written so.
fn message_in(said: &str) -> String {
    let envelope: Option<OciEnvelope> = serde_json::from_str(said).ok();
    let first = envelope.and_then(|envelope| envelope.errors.into_iter().next());
    first.map_or_else(|| said.to_owned(), |error| error.message)
}

/// What is wrong with a certificate, if that is what stands in the way.
fn certificate(error: &(dyn Error + 'static)) -> Option<String> {
    chain(error).find_map(|error| match error.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(cause)) => Some(cause.to_string()),
        _ => None,
    })
}

/// An error with its causes, each said once, without those that say no more than that there is a cause.
fn in_full(error: &(dyn Error + 'static)) -> String {
    const EMPTY: [&str; 5] = [
        "builder error",
        "error sending request",
        "client error",
        "error decoding response body",
        "request or response body error",
    ];
    let mut parts: Vec<String> = chain(error).map(ToString::to_string).collect();
    parts.dedup();
    let last = parts.pop().unwrap_or_default();
    parts.retain(|part| !EMPTY.iter().any(|empty| part.starts_with(empty)) && !part.ends_with(&last));
    parts.push(last);
    parts.join(": ")
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        // Such an error passes on its content's cause, and not its content.
        Some(content) => Some(content as &(dyn Error + 'static)),
        None => (**error).source(),
    })
}

/// The first line of what a registry says, without what a terminal would act on.
fn words(said: &str) -> String {
    let line = said.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(MOST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_asked_for_again() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(by_status(status, ""), Fault::Passing(_)), "{status}");
        }
        for status in [400, 405, 416, 301] {
            assert!(matches!(by_status(status, ""), Fault::Protocol(_)), "{status}");
        }
        assert!(matches!(by_status(403, "<html>"), Fault::Denied(said) if said == "status 403"));
        let envelope = r#"{"errors": [{"code": "DENIED", "message": "not yours"}]}"#;
        assert!(matches!(by_status(401, envelope), Fault::Denied(said) if said == "status 401, not yours"));
        assert!(matches!(by_status(404, ""), Fault::Missing(_)));
        assert!(matches!(coded(&OciErrorCode::Toomanyrequests, ""), Fault::Passing(_)));
        assert!(matches!(coded(&OciErrorCode::Denied, ""), Fault::Denied(_)));
        assert!(matches!(coded(&OciErrorCode::NameInvalid, ""), Fault::Protocol(_)));
        assert!(matches!(not_let_in(r#"{"details": "incorrect password"}"#), Fault::Denied(_)));
        assert!(matches!(not_let_in("<html>\n502 Bad Gateway"), Fault::Passing(_)));
        assert!(matches!(not_let_in(" "), Fault::Passing(_)));
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_found_among_the_causes() {
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::other(tls));
        assert!(certificate(&error).is_some_and(|cause| cause.contains("UnknownIssuer")));
        assert_eq!(certificate(&io::Error::other("no TLS")), None);
    }

    #[test]
    fn a_registry_cannot_make_the_terminal_do_things() {
        assert_eq!(words("\n <html>\u{1b}[2J\nmore"), "<html>[2J");
        assert_eq!(words(&"x".repeat(1000)).len(), MOST_WORDS);
    }
}

//! `oci://host[:port]/repository[:tag][@sha256:…]`, taken apart.
//!
//! Stricter than docker's references: the host is never left out, and neither is what is meant in the repository. A job that runs
//! whatever `latest` is today would say so with `:latest`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// What a reference begins with.
const SCHEME: &str = "oci://";

/// Where a plugin is in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    text: String,
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: say oci://HOST/REPOSITORY:TAG, or oci://HOST/REPOSITORY@sha256:… and 64 hexadecimal digits")]
pub struct BadReference {
    reason: &'static str,
}

impl Reference {
    /// Whether a text is meant to be one.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The reference as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The repository's last word, which names the plugin as a file's stem does.
    #[must_use]
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// The manifest's digest, if that is what it names.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The tag, if nothing more exact is named.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref().filter(|_| self.digest.is_none())
    }

    /// The same repository's manifest of this digest.
    #[must_use]
    pub fn with_digest(&self, manifest: &str) -> Self {
        let Self { host, repository, .. } = self;
        let (text, digest) = (format!("{SCHEME}{host}/{repository}@{manifest}"), Some(manifest.to_owned()));
        Self { text, host: host.clone(), repository: repository.clone(), tag: None, digest }
    }

    /// The registry, with its port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The repository.
    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// Whether the registry is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let name = name_of(&self.host);
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    /// As the client library has it.
    pub(super) fn for_client(&self) -> oci_client::Reference {
        let (host, repository) = (self.host.clone(), self.repository.clone());
        match (&self.digest, &self.tag) {
            (Some(digest), _) => oci_client::Reference::with_digest(host, repository, digest.clone()),
            (None, tag) => oci_client::Reference::with_tag(host, repository, tag.clone().unwrap_or_default()),
        }
    }
}

impl FromStr for Reference {
    type Err = BadReference;

    fn from_str(given: &str) -> Result<Self, BadReference> {
        let bad = |reason| BadReference { reason };
        let rest = given.strip_prefix(SCHEME).ok_or(bad("it does not begin with oci://"))?;
        let (host, path) = rest.split_once('/').ok_or(bad("it names no repository"))?;
        if !is_host(host) {
            return Err(bad("its host is no name or address, with or without a port"));
        }
        let (path, digest) = match path.split_once('@') {
            Some((path, digest)) if is_digest(digest) => (path, Some(digest.to_owned())),
            Some(_) => return Err(bad("its digest is not `sha256:` and 64 hexadecimal digits")),
            None => (path, None),
        };
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) if is_tag(tag) => (repository, Some(tag.to_owned())),
            Some(_) => return Err(bad("its tag is not letters, digits, `.`, `_` and `-`")),
            None => (path, None),
        };
        if !is_repository(repository) {
            return Err(bad("its repository is not small letters and digits, with `.`, `_` or `-` between them"));
        }
        if tag.is_none() && digest.is_none() {
            return Err(bad("it names neither a tag nor a digest"));
        }
        let (host, repository) = (host.to_owned(), repository.to_owned());
        Ok(Self { text: given.to_owned(), host, repository, tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

fn is_host(host: &str) -> bool {
    let name = name_of(host);
    let port = host.strip_prefix(name).unwrap_or_default();
    let port_is_good = port.is_empty() || port[1..].parse::<u16>().is_ok_and(|port| port > 0);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let word = |word: &str| {
        !word.is_empty()
            && !word.starts_with('-')
            && !word.ends_with('-')
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let name_is_good = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.len() <= 253 && name.split('.').all(word),
    };
    port_is_good && name_is_good
}

fn is_repository(repository: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let between = |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    let component = |component: &str| {
        let bytes = component.as_bytes();
        let ends = bytes.first().is_some_and(|byte| plain(*byte)) && bytes.last().is_some_and(|byte| plain(*byte));
        ends && component.split(|c: char| c.is_ascii() && plain(c as u8)).all(between)
    };
    repository.len() <= 255 && repository.split('/').all(component)
}

fn is_tag(tag: &str) -> bool {
    let first = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    first && tag.len() <= 128 && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Whether it is a digest that is understood here, and no other: it becomes a part of paths.
pub(super) fn is_digest(digest: &str) -> bool {
    let digits = digest.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is taken for a reference is one in the eyes of the client library too, but for hosts that it does not know.
        #[test]
        fn what_is_taken_for_one_is_one(text in "oci://[a-z0-9.:-]{0,12}/[a-z0-9._/-]{0,12}:?[a-zA-Z0-9._]{0,4}") {
            if let Ok(reference) = text.parse::<Reference>() {
                prop_assert_eq!(reference.to_string(), text);
                prop_assert!(!reference.name().is_empty());
                let theirs = reference.for_client().to_string().parse::<oci_client::Reference>();
                let theirs = theirs.unwrap();
                prop_assert_eq!(theirs.repository().rsplit('/').next(), Some(reference.name()));
            }
        }

        #[test]
        fn nothing_makes_the_parser_panic(text in ".*") {
            let _ = format!("oci://{text}").parse::<Reference>();
        }
    }

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn what_is_meant_is_found_in_it() {
        let of = |text: &str| text.parse::<Reference>().unwrap();
        let tagged = of("oci://registry.example/team/my-plugin__x.y:v1.2_rc-3");
        assert_eq!((tagged.host(), tagged.repository()), ("registry.example", "team/my-plugin__x.y"));
        assert_eq!((tagged.name(), tagged.tag(), tagged.digest()), ("my-plugin__x.y", Some("v1.2_rc-3"), None));
        let exact = of(&format!("oci://localhost:5000/digits:2@{DIGEST}"));
        assert_eq!((exact.host(), exact.tag(), exact.digest()), ("localhost:5000", None, Some(DIGEST)));
        let pinned = tagged.with_digest(DIGEST);
        assert_eq!(of(pinned.as_str()), pinned);
    }

    #[test]
    fn registries_on_this_machine_are_known() {
        let loopback = |host: &str| format!("oci://{host}/a:1").parse::<Reference>().unwrap().is_loopback();
        for host in ["localhost", "localhost:5000", "127.0.0.1:80", "127.8.9.1", "[::1]:5000", "[::1]", "LOCALHOST"] {
            assert!(loopback(host), "{host}");
        }
        for host in ["localhost.example", "128.0.0.1:5000", "[::2]", "registry.example", "127.0.0.1.example"] {
            assert!(!loopback(host), "{host}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_is_wrong_about_it() {
        let all = [
            "digits.wasm",
            "oci://registry.example",
            "oci:///a:1",
            "oci://user:secret@registry.example/a:1",
            "oci://registry.example:0/a:1",
            "oci://[::g]/a:1",
            "oci://registry.example/A:1",
            "oci://registry.example/a//b:1",
            "oci://registry.example/a",
            "oci://registry.example/a:",
            "oci://registry.example/a:1/2",
            "oci://registry.example/a@sha256:12",
            "oci://registry.example/../../etc:1",
        ];
        let reasons = all.map(|given| given.parse::<Reference>().unwrap_err().reason);
        insta::assert_snapshot!(reasons.join("\n"), @r"
        it does not begin with oci://
        it names no repository
        its host is no name or address, with or without a port
        its host is no name or address, with or without a port
        its host is no name or address, with or without a port
        its host is no name or address, with or without a port
        its repository is not small letters and digits, with `.`, `_` or `-` between them
        its repository is not small letters and digits, with `.`, `_` or `-` between them
        it names neither a tag nor a digest
        its tag is not letters, digits, `.`, `_` and `-`
        its tag is not letters, digits, `.`, `_` and `-`
        its digest is not `sha256:` and 64 hexadecimal digits
        its repository is not small letters and digits, with `.`, `_` or `-` between them
        ");
        insta::assert_snapshot!("oci://r/a".parse::<Reference>().unwrap_err(), @"it names neither a tag nor a digest: say oci://HOST/REPOSITORY:TAG, or oci://HOST/REPOSITORY@sha256:… and 64 hexadecimal digits");
    }
}

//! Values of options, each read the same way from the command line and from a job's file.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{Error, Visitor};

use crate::job::spec::PluginSource;
use crate::registry::{BadReference, Reference};

/// A time of at least a millisecond, such as `30s` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let given = given.trim();
        if given.parse::<f64>().is_ok() {
            return Err("it has no unit: say for example 30s, 10m or 2h".to_owned());
        }
        match humantime::parse_duration(given) {
            Ok(time) if time >= Duration::from_millis(1) => Ok(Self(time)),
            Ok(_) => Err("it has to be at least a millisecond".to_owned()),
            Err(_) => Err("it is not a time, such as 30s, 10m or 2h".to_owned()),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// A number of bytes that a guest could live in, such as `2GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl Size {
    /// One page of WebAssembly's memory.
    const LEAST: u64 = 64 << 10;
}

impl FromStr for Size {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.trim().parse::<bytesize::ByteSize>() {
            Ok(size) if size.as_u64() >= Self::LEAST => Ok(Self(size.as_u64())),
            Ok(_) => Err("it is less than the 64KiB of one page of memory".to_owned()),
            Err(_) => Err("it is not a size, such as 512MiB or 2GiB".to_owned()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The path of a file or folder. `-`, which other programs take for a stream, and nothing are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) PathBuf);

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        match given {
            "" => Err("it is empty"),
            "-" => Err("a file or folder is needed; streams are not read (for one that is called so, say ./-)"),
            given if given.contains('\0') => Err("it contains a zero byte"),
            given => Ok(Self(given.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Where a plugin is: a file, or a reference to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source(pub(super) PluginSource);

impl FromStr for Source {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        if Reference::is_meant(given) {
            let reference = given.parse().map_err(|error: BadReference| error.to_string())?;
            return Ok(Self(PluginSource::Registry(reference)));
        }
        let Place(file) = given.parse()?;
        Ok(Self(PluginSource::File(file)))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The digest of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest(String);

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        let given = given.trim().to_ascii_lowercase();
        let digits = given.strip_prefix("sha256:").unwrap_or_default();
        let whole = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if whole { Ok(Self(given)) } else { Err("it is not `sha256:` and 64 hexadecimal digits") }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For clap: a number from 1 on.
pub(super) fn at_least_one(given: &str) -> Result<NonZeroU32, String> {
    given.parse().map_err(|_| "it has to be a whole number from 1 on".to_owned())
}

/// For serde: a text or whole number of a job's file, read as the same text on the command line is.
pub(super) fn as_on_command_line<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    deserializer.deserialize_any(AsText(PhantomData)).map(Some)
}

/// For serde: a whole number, also as a text, since TOML's own numbers end at 2^63.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    as_on_command_line::<D, Whole>(deserializer).map(|number| number.map(|number| number.0))
}

/// For serde: a number from 1 on.
pub(super) fn from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    as_on_command_line::<D, FromOne>(deserializer).map(|number| number.map(|number| number.0))
}

struct FromOne(NonZeroU32);

impl FromStr for FromOne {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        at_least_one(given).map(Self)
    }
}

struct Whole(u64);

impl FromStr for Whole {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        given.parse().map(Self).map_err(|_| "it has to be a whole number from 0 on")
    }
}

struct AsText<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for AsText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn values_that_make_sense() {
        assert_eq!("1h 30m".parse::<Time>().unwrap().0, Duration::from_secs(5400));
        assert_eq!("2GiB".parse::<Size>().unwrap().0, 2 << 30);
        assert_eq!("65536".parse::<Size>().unwrap().0, 65536);
        assert_eq!("./-".parse::<Place>().unwrap().0, PathBuf::from("./-"));
        assert_eq!(at_least_one("3").unwrap().get(), 3);
    }

    #[test]
    fn nonsense_is_refused() {
        for given in ["", "-", "30", "-30s", "0s", "1.5", "soon", "999999999999999999999h"] {
            assert!(given.parse::<Time>().is_err(), "{given}");
        }
        for given in ["", "-", "-2GiB", "0", "2", "lots", "2GiBs"] {
            assert!(given.parse::<Size>().is_err(), "{given}");
        }
        for given in ["", "sha256:", "sha256:0123", &format!("sha256:{}", "g".repeat(64)), &"0".repeat(64)] {
            assert!(given.parse::<Digest>().is_err(), "{given}");
        }
        for given in ["", "-", "a\0b"] {
            assert!(given.parse::<Place>().is_err(), "{given}");
            assert!(given.parse::<Source>().is_err(), "{given}");
        }
        assert!("oci://registry.example/a".parse::<Source>().is_err(), "what is meant as a reference is no file");
        for given in ["", "-", "0", "-1", "1.5", "4294967296"] {
            assert!(at_least_one(given).is_err(), "{given}");
        }
    }
}

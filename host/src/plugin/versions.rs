//! Which state a plugin says that it writes and reads: the custom section `steadfast:state-versions`, as `steadfast.wit` describes it.
//!
//! It is a claim, and nobody has to make it. What it is good for is to tell early that a checkpoint will not be read; whether it is
//! read, `restore` decides.

use std::fmt;

/// The section's name.
pub(super) const SECTION: &str = "steadfast:state-versions";

/// More than any plugin that was ever maintained; keeps a crafted file from filling a screen.
const MOST: usize = 1024;

/// The versions of state that a plugin deals with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateVersions {
    /// What `snapshot` answers.
    pub writes: u32,
    /// What `restore` reads, in ascending order.
    pub reads: Vec<u32>,
}

impl StateVersions {
    /// Whether `restore` reads state of this version, as far as the plugin says.
    #[must_use]
    pub fn can_read(&self, version: u32) -> bool {
        self.reads.binary_search(&version).is_ok()
    }

    fn parse(section: &[u8]) -> Result<Self, String> {
        let (numbers, []) = section.as_chunks::<4>() else {
            return Err(format!("{} bytes are not a number of u32s", section.len()));
        };
        let [writes, reads @ ..] = numbers else { return Err("it is empty".to_owned()) };
        if reads.len() > MOST {
            return Err(format!("{} versions are too many", reads.len()));
        }
        let writes = u32::from_le_bytes(*writes);
        let mut reads: Vec<u32> = reads.iter().map(|number| u32::from_le_bytes(*number)).collect();
        reads.sort_unstable();
        reads.dedup();
        let versions = Self { writes, reads };
        // Whoever believed this would refuse the plugin its own checkpoints.
        if !versions.can_read(writes) {
            return Err(format!("version {writes}, which it writes, is not among those that it reads"));
        }
        Ok(versions)
    }
}

impl fmt::Display for StateVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads: Vec<String> = self.reads.iter().map(u32::to_string).collect();
        let reads = match &reads[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            all => all.join(", "),
        };
        write!(f, "writes version {}, reads {reads}", self.writes)
    }
}

/// What the sections of one component say together; nothing if there are none.
pub(super) fn understand(sections: &[&[u8]]) -> Result<Option<StateVersions>, String> {
    let mut found: Option<StateVersions> = None;
    for section in sections {
        let versions = StateVersions::parse(section)?;
        match &found {
            Some(earlier) if *earlier != versions => return Err("two sections contradict each other".to_owned()),
            _ => found = Some(versions),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn section(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn what_a_plugin_says_is_read_as_it_is_documented() {
        let said = section(&[2, 2, 1, 2]);
        let versions = understand(&[&said, &said]).unwrap().unwrap();
        assert_eq!(versions, StateVersions { writes: 2, reads: vec![1, 2] });
        assert_eq!(versions.to_string(), "writes version 2, reads 1 and 2");
        assert!(versions.can_read(1) && !versions.can_read(3));
        assert_eq!(StateVersions { writes: 4, reads: vec![1, 3, 4] }.to_string(), "writes version 4, reads 1, 3 and 4");
        assert_eq!(understand(&[]), Ok(None));
    }

    #[test]
    fn what_makes_no_sense_is_said_and_not_believed() {
        let many: Vec<u32> = (0..2000).collect();
        for (numbers, said) in [(&[2, 1][..], "which it writes"), (&[7], "which it writes"), (&many, "too many")] {
            let why = understand(&[&section(numbers)]).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
        for (bytes, said) in [(&b""[..], "it is empty"), (b"12345", "5 bytes are not")] {
            let why = understand(&[bytes]).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
        assert!(understand(&[&section(&[1, 1]), &section(&[2, 2])]).unwrap_err().contains("contradict"));
    }
}

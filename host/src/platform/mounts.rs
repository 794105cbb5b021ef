//! The kernel's table of mounts, `/proc/self/mountinfo`, as far as it tells where a path lies.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//!            root  point options    tags…    - type source    options
//! ```
//! White space and backslashes in paths are written as a backslash and three octal digits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The folder of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Type of the file system, such as `ext4` or `fuse.gcsfuse`.
    pub filesystem: String,
    /// What is mounted: a block device, an NFS export, a bucket.
    pub source: String,
}

/// All mounts that this process sees, in the order of the table.
#[derive(Clone, Debug, Default)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the table's text. Lines that aren't understood are left out: the kernel may add fields.
    #[must_use]
    pub fn parse(table: &str) -> Self {
        Self(table.lines().filter_map(parse_line).collect())
    }

    /// Where `path` lies. It has to be absolute and without links. The deepest mount point counts, and of several mounts on
    /// one point the last, which covers the others.
    #[must_use]
    pub fn holding(&self, path: &Path) -> Option<&Mount> {
        self.0
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    /// Whether something is mounted exactly there.
    #[must_use]
    pub fn is_point(&self, path: &Path) -> bool {
        self.0.iter().any(|mount| mount.point == path)
    }
}

fn parse_line(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let root = fields.nth(3)?;
    let point = fields.next()?;
    let mut behind_dash = fields.skip_while(|field| *field != "-").skip(1);
    Some(Mount {
        root: unescape(root).into(),
        point: unescape(point).into(),
        filesystem: behind_dash.next()?.to_owned(),
        source: unescape(behind_dash.next()?).to_string_lossy().into_owned(),
    })
}

fn unescape(field: &str) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = (first == b'\\').then(|| octal(behind)).flatten();
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes)
}

/// The byte that three octal digits stand for.
fn octal(digits: &[u8]) -> Option<u8> {
    let digits = digits.get(..3)?;
    let value = digits.iter().try_fold(0_u32, |value, digit| match digit {
        b'0'..=b'7' => Some(value * 8 + u32::from(digit - b'0')),
        _ => None,
    })?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
22 1 0:20 / / rw,relatime shared:1 master:2 - overlay overlay rw,lowerdir=/a\\040b
23 22 8:1 /data /mnt/with\\040space rw - ext4 /dev/sda1 rw
24 22 0:31 / /mnt/with rw shared:9 - nfs4 server:/export rw
25 24 0:32 / /mnt/with rw - fuse.gcsfuse my-bucket rw
nonsense
26 22 0:33 / /mnt/odd\\134\\011\\999 rw - ext4 /dev/sdb rw";

    #[test]
    fn the_deepest_mount_holds_a_path_and_the_last_covers_the_others() {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(mounts.0.len(), 5);
        let at = |path: &str| mounts.holding(Path::new(path)).unwrap();
        assert_eq!(at("/mnt/with space/job").filesystem, "ext4");
        assert_eq!(at("/mnt/with space").root, Path::new("/data"));
        assert_eq!(at("/mnt/with/job").filesystem, "fuse.gcsfuse");
        assert_eq!(at("/mnt/with/job").source, "my-bucket");
        assert_eq!(at("/mnt/without").filesystem, "overlay");
        assert_eq!(at("/").filesystem, "overlay");
        assert!(mounts.is_point(Path::new("/mnt/odd\\\t\\999")));
        assert!(!mounts.is_point(Path::new("/mnt")));
    }

    #[test]
    fn the_table_of_this_machine_is_understood() {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = Mounts::parse(&table);
        assert_eq!(mounts.0.len(), table.lines().count());
        assert!(mounts.holding(Path::new("/proc/self")).unwrap().filesystem == "proc");
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(table in "[ -~\\\\\n]{0,200}") {
            let mounts = Mounts::parse(&table);
            let _ = mounts.holding(Path::new("/x"));
        }

        #[test]
        fn escaped_names_come_back(name in "[a-z \t\\\\é]{1,20}") {
            let escaped = name.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011");
            prop_assert_eq!(unescape(&escaped), OsString::from(name));
        }
    }
}

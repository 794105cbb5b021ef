//! Files that people write: configurations and jobs.

use std::fs;
use std::path::Path;

/// Far more than anybody writes; keeps a wrong path from filling the memory.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file, or in a few words why there is none. What is no file is not opened: a pipe or a device may never end.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    if about.len() > MOST_BYTES {
        let size = |bytes| bytesize::ByteSize::b(bytes).display().iec();
        return Err(format!("it has {}, and the most is {}", size(about.len()), size(MOST_BYTES)));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not text (UTF-8)".to_owned())?;
    // Some editors begin a file with a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

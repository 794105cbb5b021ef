//! Closing a file and hearing what comes of it. The standard library closes without looking.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;

/// Closes the file. An interrupted close counts as failed too: the descriptor is gone, and whether the data is safe is not known.
#[expect(unsafe_code, reason = "no safe function of the libraries in use closes a descriptor and returns the error")]
pub(super) fn close(file: File) -> io::Result<()> {
    let descriptor = file.into_raw_fd();
    // SAFETY: `into_raw_fd` gave up ownership, so the descriptor is open, nobody else closes it, and nobody uses it after this.
    if unsafe { libc::close(descriptor) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

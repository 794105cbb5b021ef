//! What a guest sees of WASI 0.2: two folders, real clocks, its standard streams and seeded random bytes.
//!
//! No environment, no arguments, no standard input. The socket interfaces exist, since Python's and other run-times import them
//! whether or not they are used, but creating or resolving anything is refused.

use std::path::Path;

use wasmtime_wasi::{FsPerms, WasiCtx};

use super::random::Random;
use super::stdio::Lines;
use super::{GuestSettings, PluginError};

/// The most random bytes in one call; a bound on what the host allocates for a guest.
const MOST_RANDOM_BYTES: u64 = 16 << 20;

pub(super) fn context(
    settings: &GuestSettings,
    stdout: &Lines,
    stderr: &Lines,
    random: &Random,
) -> Result<WasiCtx, PluginError> {
    let mut wasi = WasiCtx::builder();
    wasi.allow_blocking_current_thread(true)
        .stdout(stdout.clone())
        .stderr(stderr.clone())
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .secure_random(random.secure.clone())
        .insecure_random(random.insecure.clone())
        .insecure_random_seed(random.insecure_seed)
        .max_random_size(MOST_RANDOM_BYTES);
    let mut open = |path: &Path, guest: &'static str, permissions| match wasi.preopened_dir(path, guest, permissions) {
        Ok(_) => Ok(()),
        Err(error) => Err(PluginError::Folder { path: path.to_owned(), guest, cause: error.root_cause().to_string() }),
    };
    if let Some(input) = &settings.input {
        open(input, "/input", FsPerms::ReadOnly)?;
    }
    open(&settings.output, "/output", FsPerms::ReadWrite)?;
    Ok(wasi.build())
}

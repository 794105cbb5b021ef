//! The suite on the CUDA device: in a process for each case, since a fault of a GPU is for good in the process that met it, and since the dynamic
//! linker looks for libraries where it was told to when the process began.

use std::process::Command;

use steadfast::device::cuda::{CudaDevice, Settings};

use super::Case;
use super::lab::Lab;
use crate::support::Double;

/// In the environment of a process that is to run a case itself.
const HERE: &str = "STEADFAST_TEST_CASE";

/// On the double, which computes as soon as it is told; or on the GPU of this machine, as `cargo xtask test-gpu` asks for.
pub fn on_cuda(name: &str, case: Case) {
    let gpu = std::env::var_os("STEADFAST_TEST_GPU").is_some();
    in_a_process(name, case, |command| if gpu { command } else { Double::new().lend(command) });
}

/// On the double, which computes when somebody waits for it.
pub fn on_a_lazy_double(name: &str, case: Case) {
    in_a_process(name, case, |command| Double::new().lend(command).env("CUDA_DOUBLE_LAZY", "1"));
}

fn in_a_process(name: &str, case: Case, lend: impl Fn(&mut Command) -> &mut Command) {
    let (_, name) = name.split_once("::").unwrap();
    if std::env::var_os(HERE).is_some_and(|asked| asked == name) {
        case(&mut Lab::new(|| Box::new(CudaDevice::open(&Settings { number: 0, memory_bytes: 1 << 30 }).unwrap())));
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(HERE, name);
    let output = lend(&mut command).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "{}: {}\n{}", output.status, said[0], said[1]);
    assert!(said[0].contains("1 passed"), "the case did not run: {}", said[0]);
}

//! NVIDIA's driver, its library and its devices, told from files alone.

use std::path::{Path, PathBuf};

use super::Check;
use crate::platform::Environment;

const LIBRARY: &str = "libcuda.so.1";
/// Where it lies without anybody saying so: distributions', containers', and those of Windows' subsystem.
const FOLDERS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
];

/// The files of a machine, as far as they matter here.
pub(super) struct Machine<'a> {
    environment: Environment<'a>,
    read: &'a dyn Fn(&Path) -> Option<String>,
    list: &'a dyn Fn(&Path) -> Vec<String>,
    is_there: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Machine<'a> {
    pub(super) fn real(environment: Environment<'a>) -> Self {
        Self {
            environment,
            read: &|path| std::fs::read_to_string(path).ok(),
            list: &|path| {
                let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            },
            is_there: &|path| path.exists(),
        }
    }

    /// The release of the driver in the kernel.
    fn driver(&self) -> Option<String> {
        let text = (self.read)(Path::new("/proc/driver/nvidia/version"))?;
        // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.154.05  Thu …`
        let number = text.split_whitespace().find(|word| {
            word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.') && !word.contains(':')
        });
        Some(number.unwrap_or("of unknown version").to_owned())
    }

    /// Models of the GPUs that the driver knows.
    fn models(&self) -> Vec<String> {
        let gpus = Path::new("/proc/driver/nvidia/gpus");
        let mut folders = (self.list)(gpus);
        folders.sort();
        let about = folders.iter().filter_map(|folder| (self.read)(&gpus.join(folder).join("information")));
        about
            .filter_map(|text| {
                let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
                Some(model.trim().to_owned())
            })
            .collect()
    }

    /// Whether this process is given any: `/dev/nvidia0`, or Windows' subsystem's one device.
    fn device_files(&self) -> bool {
        let numbered = |name: &String| name.strip_prefix("nvidia").is_some_and(|rest| rest.parse::<u32>().is_ok());
        (self.list)(Path::new("/dev")).iter().any(numbered) || (self.is_there)(Path::new("/dev/dxg"))
    }

    fn library(&self) -> Option<PathBuf> {
        let said = (self.environment)("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = said.split(':').filter(|folder| !folder.is_empty()).chain(FOLDERS);
        folders.map(|folder| Path::new(folder).join(LIBRARY)).find(|file| (self.is_there)(file))
    }
}

/// No job needs a GPU: without one, the same kernels run on the CPU.
pub(super) fn checks(machine: &Machine<'_>) -> Vec<Check> {
    const WHAT: &str = "GPU driver";
    let (driver, library, models) = (machine.driver(), machine.library(), machine.models());
    let Some(driver) = driver else {
        return vec![Check::fine(WHAT, "none; kernels run on the CPU")];
    };
    let found = format!("{driver}{}", library.as_ref().map_or(String::new(), |file| format!(" · {}", file.display())));
    let check = match (&library, machine.device_files()) {
        (None, _) => Check::note(
            WHAT,
            format!("{found} · no {LIBRARY}"),
            format!(
                "the driver is there and its library is not: start the container with NVIDIA's runtime, or put the folder of {LIBRARY} into LD_LIBRARY_PATH"
            ),
        ),
        (Some(_), false) => Check::note(
            WHAT,
            format!("{found} · no device file"),
            "the driver is there and this container is given no GPU: ask the platform for one (--gpus all, nvidia.com/gpu)",
        ),
        (Some(_), true) => Check::fine(WHAT, found),
    };
    let devices = match &models[..] {
        [] => None,
        models => Some(Check::fine("GPUs", models.join(", "))),
    };
    [Some(check), devices].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.154.05  Thu Dec 28 15:37:48 UTC 2023\nGCC version:  gcc version 12.2.0\n";

    /// On a machine with these files; those without content are only there.
    fn found(files: &[(&str, &str)], library_path: Option<&str>) -> String {
        let read =
            |path: &Path| files.iter().find(|(file, _)| Path::new(file) == path).map(|(_, text)| (*text).to_owned());
        let list = |path: &Path| {
            let below = files.iter().filter_map(|(file, _)| Path::new(file).strip_prefix(path).ok());
            below.filter_map(|rest| Some(rest.iter().next()?.to_string_lossy().into_owned())).collect()
        };
        let is_there = |path: &Path| files.iter().any(|(file, _)| Path::new(file) == path);
        let environment = |name: &str| library_path.filter(|_| name == "LD_LIBRARY_PATH").map(str::to_owned);
        let machine = Machine { environment: &environment, read: &read, list: &list, is_there: &is_there };
        let lines = checks(&machine).into_iter().map(|check| {
            format!("{:?} {}: {} {}", check.state, check.what, check.found, check.advice.unwrap_or_default())
        });
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_machine_without_a_gpu_is_fine() {
        assert_eq!(found(&[], None), "Fine GPU driver: none; kernels run on the CPU\n");
        // What some container images bring along is of no use without a driver.
        assert_eq!(found(&[("/usr/lib64/libcuda.so.1", "")], None), found(&[], None));
    }

    #[test]
    fn what_lies_between_a_driver_and_its_use_is_said() {
        let driver = ("/proc/driver/nvidia/version", VERSION);
        let library = ("/opt/driver/libcuda.so.1", "");
        let device = ("/dev/nvidia0", "");
        let model = ("/proc/driver/nvidia/gpus/0000:65:00.0/information", "Model: \t\t NVIDIA L4\nIRQ: 80\n");
        assert!(
            found(&[driver, ("/dev/nvidiactl", "")], None)
                .starts_with("Note GPU driver: 535.154.05 · no libcuda.so.1 the driver")
        );
        assert!(found(&[driver, library], Some("/x:/opt/driver")).contains("libcuda.so.1 · no device file the driver"));
        assert_eq!(
            found(&[driver, library, device, model], Some(":/opt/driver")),
            "Fine GPU driver: 535.154.05 · /opt/driver/libcuda.so.1\n\
             Fine GPUs: NVIDIA L4\n"
        );
    }
}

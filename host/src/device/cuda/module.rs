//! Modules: compiled by the driver, with its compiler's words where it refuses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use steadfast_ptx::module::Module;

use super::driver_unsafe::{self as driver, Function};
use super::error::{Failed, NO_BINARY, UNSUPPORTED_PTX};
use super::gpu::Gpu;
use crate::device::{DeviceError, Result, Source};

/// A module that the driver has compiled.
pub(super) struct Loaded {
    pub(super) handle: driver::Module,
    /// What our parser read, where it did.
    parsed: Option<Arc<Module>>,
    functions: HashMap<String, Function>,
    /// Variables that the driver left out, since no instruction that is ever executed names them: their content, by index.
    left_out: HashMap<usize, Vec<u8>>,
}

/// Where a variable is.
pub(super) enum Variable<'a> {
    /// At an address of the device.
    Device(u64),
    /// Here: the driver knows nothing of it.
    Host(&'a mut Vec<u8>),
}

impl Loaded {
    pub(super) fn load(gpu: &mut Gpu, capability: [u32; 2], source: &Source<'_>) -> Result<Self> {
        let (text, parsed) = match source {
            Source::Parsed { text, module } => (*text, Some(module.clone())),
            Source::Known { text, known } => (*text, Some(known.outline.clone())),
            Source::CudaOnly { text } => (*text, None),
        };
        let ended = CString::new(text)
            .map_err(|error| DeviceError::InvalidModule(format!("byte {} of the text is NUL", error.nul_position())))?;
        match gpu.driver.load_module(&ended) {
            Ok(handle) => Ok(Self { handle, parsed, functions: HashMap::new(), left_out: HashMap::new() }),
            Err((failed, log)) => Err(refusal(gpu, failed, text, capability, &log)),
        }
    }

    /// The entry of this name. Of a module that was not parsed there may be none.
    pub(super) fn function(&mut self, gpu: &mut Gpu, name: &str, parameters: usize) -> Result<Function> {
        let entry = match self.functions.entry(name.to_owned()) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(entry) => entry,
        };
        let found = gpu.driver.function(self.handle, &name_of(name)?);
        let unknown = || match self.parsed {
            Some(_) => DeviceError::Lost(format!("the driver does not find the kernel `{name}`, which the module has")),
            None => DeviceError::InvalidArgument(format!("the module has no entry `{name}`")),
        };
        let function = gpu.done(found)?.ok_or_else(unknown)?;
        if self.parsed.is_none() {
            let takes = gpu.driver.parameter_bytes(function);
            if let Some(takes) = gpu.done(takes)?.filter(|takes| *takes != parameters) {
                let text = format!("`{name}` takes {takes} bytes of arguments, and {parameters} were given");
                return Err(DeviceError::InvalidArgument(text));
            }
        }
        Ok(*entry.insert(function))
    }

    /// Whether our parser has read it.
    pub(super) fn is_parsed(&self) -> bool {
        self.parsed.is_some()
    }

    /// A variable by its index in what was parsed.
    pub(super) fn variable(&mut self, gpu: &mut Gpu, index: usize) -> Result<Variable<'_>> {
        let unknown = || DeviceError::InvalidArgument("the module has no such variable".to_owned());
        let module = self.parsed.as_ref().ok_or_else(unknown)?;
        let variable = module.variables.get(index).ok_or_else(unknown)?;
        let found = gpu.driver.variable(self.handle, &name_of(&variable.name)?);
        match gpu.done(found)? {
            Some((address, bytes)) if bytes >= variable.bytes => Ok(Variable::Device(address)),
            Some((_, bytes)) => Err(DeviceError::Lost(format!(
                "the driver has {bytes} bytes of the variable `{}`, and it is {} bytes large",
                variable.name, variable.bytes
            ))),
            None => Ok(Variable::Host(self.left_out.entry(index).or_insert_with(|| initial(module, index)))),
        }
    }
}

/// What a variable holds at first, with 0 in the place of addresses.
fn initial(module: &Module, index: usize) -> Vec<u8> {
    let Some(variable) = module.variables.get(index) else { return Vec::new() };
    let mut content = variable.initial.clone();
    content.resize(variable.bytes as usize, 0);
    content
}

fn name_of(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| DeviceError::InvalidArgument("the name holds a NUL".to_owned()))
}

/// Why a text is not accepted, or what else it was.
fn refusal(gpu: &mut Gpu, failed: Failed, text: &str, capability: [u32; 2], log: &str) -> DeviceError {
    if failed.is_out_of_memory() {
        return DeviceError::OutOfMemory(format!("the module has no place on the GPU: {failed}"));
    }
    if !failed.is_of_the_text() {
        return gpu.lost(failed);
    }
    let said = |directive| word_after(text, directive).unwrap_or("unknown");
    let mut why = match failed.code {
        UNSUPPORTED_PTX => {
            let version = gpu.driver.version().map_or_else(|_| "an unknown version".to_owned(), version_in_words);
            format!(
                "the PTX is of version {}, and the driver here serves CUDA up to {version}: install a newer driver, or make the PTX with an older \
                 compiler (NVRTC 12.2 writes version 8.2)",
                said(".version")
            )
        }
        NO_BINARY => {
            let [major, minor] = capability;
            format!(
                "the PTX is for {} or later, and this GPU is of compute capability {major}.{minor}",
                said(".target")
            )
        }
        _ => format!("the driver does not accept the module: {failed}"),
    };
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        why.push_str("\n  | ");
        why.push_str(line.trim_end());
    }
    DeviceError::InvalidModule(why)
}

/// A version as the driver counts it, as people write it.
pub(super) fn version_in_words(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn word_after<'t>(text: &'t str, directive: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(directive)?;
    rest.split(|c: char| c.is_whitespace() || c == ',').find(|word| !word.is_empty())
}

/// The kernels of our own.
pub(super) const OWN: &CStr = c_text(concat!(include_str!("kernels.ptx"), "\0"));

const fn c_text(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the PTX of our own kernels holds a NUL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_as_people_write_them() {
        assert_eq!(version_in_words(12_020), "12.2");
        assert_eq!(version_in_words(13_000), "13.0");
        let text = "// x\n.version 8.7\n.target sm_90a, debug\n";
        assert_eq!(
            [".version", ".target", ".nothing"].map(|directive| word_after(text, directive)),
            [Some("8.7"), Some("sm_90a"), None]
        );
    }

    #[test]
    fn a_variable_that_the_driver_left_out_holds_what_the_text_says() {
        let text =
            ".version 8.2\n.target sm_75\n.address_size 64\n.global .u32 a = 5;\n.global .align 8 .u64 b[2] = {7, 8};";
        let module = steadfast_ptx::parse::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(initial(&module, 0), [5, 0, 0, 0]);
        assert_eq!(initial(&module, 1), [[7, 0, 0, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0]].concat());
    }
}

//! What a GPU has: memory with addresses, modules, and the CPU device that computes.
//!
//! An address here is the one that the CPU device has: a kernel is asked for it, since nobody else may know. So pointers mean the same to the host and to
//! kernels, wherever the host puts them. Addresses of variables are made up: kernels find those by name.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

use steadfast::device::cpu::{CpuDevice, Settings};
use steadfast::device::{Argument, BufferId, Context, DeviceError, Element, Gemm, Launch, Matrix, ModuleId, Stopper};
use steadfast_ptx::module::Function;

use crate::code;
use crate::gpu::handle;
use crate::settings::SETTINGS;

/// Of variables: far above what the CPU device has.
const MADE_UP: u64 = 1 << 60;

const TELL: &str = ".version 8.2\n.target sm_75\n.address_size 64
.visible .entry tell(.param .u64 what, .param .u64 to) {
    .reg .u64 %what, %to;
    ld.param.u64 %what, [what];
    ld.param.u64 %to, [to];
    st.global.u64 [%to], %what;
    ret;
}";

/// A GPU's things.
pub(crate) struct Bench {
    context: Context,
    tell: ModuleId,
    told: BufferId,
    used: u64,
    places: BTreeMap<u64, Place>,
    modules: HashMap<u64, Loaded>,
    functions: HashMap<u64, (u64, Arc<Function>)>,
}

/// What lies at an address.
#[derive(Clone)]
struct Place {
    what: What,
    bytes: u64,
}

#[derive(Clone)]
enum What {
    Buffer(BufferId),
    Variable { module: u64, id: ModuleId, name: String },
}

struct Loaded {
    id: ModuleId,
    functions: HashMap<String, Arc<Function>>,
}

/// A matrix, as cuBLAS is given it.
pub(crate) struct Operand {
    pub(crate) address: u64,
    pub(crate) leading: i64,
    pub(crate) stride: i64,
    pub(crate) transpose: bool,
}

/// A product, as cuBLAS is given it.
pub(crate) struct Product {
    pub(crate) element: Element,
    pub(crate) shape: [i64; 3],
    pub(crate) alpha: f64,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) beta: f64,
    pub(crate) c: Operand,
    pub(crate) batch: i64,
}

/// What the driver would answer.
fn code_of(error: &DeviceError) -> u32 {
    match error {
        DeviceError::OutOfMemory(_) => code::OUT_OF_MEMORY,
        DeviceError::InvalidModule(_) => code::INVALID_PTX,
        DeviceError::Lost(text) if text.contains("it reached for") => code::ILLEGAL_ADDRESS,
        DeviceError::Lost(_) => code::LAUNCH_FAILED,
        DeviceError::InvalidArgument(_) => code::INVALID_VALUE,
        DeviceError::Stopped => code::UNKNOWN,
    }
}

impl Bench {
    pub(crate) fn open() -> Result<Self, u32> {
        let settings = Settings {
            // Nothing is taken before it is used, and the double counts for itself.
            memory_bytes: SETTINGS.memory.saturating_mul(2),
            cores: NonZeroUsize::MIN,
            cache: None,
            canonical_nans: false,
            vectors: true,
        };
        let device = CpuDevice::open(&settings).map_err(|_| code::OUT_OF_MEMORY)?;
        let mut context = Context::new(Box::new(device));
        let tell = context.load(TELL).map_err(|error| code_of(&error))?;
        let told = context.allocate(8).map_err(|error| code_of(&error))?;
        let (places, modules, functions) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        Ok(Self { context, tell, told, used: 0, places, modules, functions })
    }

    pub(crate) fn stopper(&self) -> Stopper {
        self.context.stopper()
    }

    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64, u32> {
        if bytes == 0 {
            return Err(code::INVALID_VALUE);
        }
        if bytes > SETTINGS.memory - self.used {
            return Err(code::OUT_OF_MEMORY);
        }
        let buffer = self.context.allocate(bytes).map_err(|error| code_of(&error))?;
        let address = self.address_of(buffer).map_err(|error| code_of(&error))?;
        // Whoever relies on zeros has to make them.
        let garbage = vec![0xCD; usize::try_from(bytes.min(1 << 16)).unwrap_or_default()];
        self.context.write(buffer, 0, &garbage).map_err(|error| code_of(&error))?;
        self.used += bytes;
        self.places.insert(address, Place { what: What::Buffer(buffer), bytes });
        Ok(address)
    }

    fn address_of(&mut self, buffer: BufferId) -> Result<u64, DeviceError> {
        let arguments = [Argument::Buffer(buffer, 0), Argument::Buffer(self.told, 0)];
        let launch = Launch { entry: "tell", grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments: &arguments };
        self.context.launch(self.tell, &launch)?;
        let mut address = [0; 8];
        self.context.read(self.told, 0, &mut address)?;
        Ok(u64::from_le_bytes(address))
    }

    pub(crate) fn free(&mut self, address: u64) -> Result<(), u32> {
        match self.places.get(&address) {
            Some(Place { what: What::Buffer(buffer), bytes }) => {
                self.used -= bytes;
                self.context.free(*buffer);
                self.places.remove(&address);
                Ok(())
            }
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// What a range lies in, and where in it.
    fn find(&self, address: u64, bytes: u64) -> Result<(What, u64), u32> {
        let (start, place) = self.places.range(..=address).next_back().ok_or(code::ILLEGAL_ADDRESS)?;
        let offset = address - start;
        if offset > place.bytes || bytes > place.bytes - offset {
            return Err(code::ILLEGAL_ADDRESS);
        }
        Ok((place.what.clone(), offset))
    }

    fn buffer(&self, address: u64, bytes: u64) -> Result<(BufferId, u64), u32> {
        match self.find(address, bytes)? {
            (What::Buffer(buffer), offset) => Ok((buffer, offset)),
            (What::Variable { .. }, _) => Err(code::ILLEGAL_ADDRESS),
        }
    }

    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), u32> {
        let written = match self.find(address, bytes.len() as u64)? {
            (What::Buffer(buffer), offset) => self.context.write(buffer, offset, bytes),
            (What::Variable { id, name, .. }, offset) => self.context.write_variable(id, &name, offset, bytes),
        };
        written.map_err(|error| code_of(&error))
    }

    pub(crate) fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), u32> {
        let read = match self.find(address, bytes.len() as u64)? {
            (What::Buffer(buffer), offset) => self.context.read(buffer, offset, bytes),
            (What::Variable { id, name, .. }, offset) => self.context.read_variable(id, &name, offset, bytes),
        };
        read.map_err(|error| code_of(&error))
    }

    pub(crate) fn fill(&mut self, address: u64, pattern: u32, words: u64) -> Result<(), u32> {
        let (buffer, offset) = self.buffer(address, words * 4)?;
        self.context.fill(buffer, offset, words * 4, pattern).map_err(|error| code_of(&error))
    }

    pub(crate) fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), u32> {
        if to.abs_diff(from) < bytes {
            // Not defined there; so nobody may rely on it.
            return Err(code::INVALID_VALUE);
        }
        let (to, from) = (self.buffer(to, bytes)?, self.buffer(from, bytes)?);
        self.context.copy(to, from, bytes).map_err(|error| code_of(&error))
    }

    /// Loads a module; with the code comes what the compiler says.
    pub(crate) fn load(&mut self, text: &str) -> Result<u64, (u32, String)> {
        let version = text.split_once(".version").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("");
        if known_version(version) > SETTINGS.cuda {
            return Err((code::UNSUPPORTED_PTX, "ptxas: Unsupported .version".to_owned()));
        }
        let refuse = |error: DeviceError| (code_of(&error), format!("ptxas of the double: {error}"));
        let id = self.context.load(text).map_err(refuse)?;
        let parsed = steadfast_ptx::parse::parse(text).map_err(|error| (code::INVALID_PTX, error.to_string()))?;
        let entries = parsed.functions.into_iter().filter(|function| function.entry);
        let functions = entries.map(|function| (function.name.clone(), Arc::new(function))).collect();
        let module = handle();
        self.modules.insert(module, Loaded { id, functions });
        Ok(module)
    }

    pub(crate) fn unload(&mut self, module: u64) -> Result<(), u32> {
        let loaded = self.modules.remove(&module).ok_or(code::INVALID_HANDLE)?;
        self.context.unload(loaded.id);
        self.functions.retain(|_, (of, _)| *of != module);
        self.places.retain(|_, place| !matches!(place.what, What::Variable { module: of, .. } if of == module));
        Ok(())
    }

    pub(crate) fn function(&mut self, module: u64, name: &str) -> Result<u64, u32> {
        let loaded = self.modules.get(&module).ok_or(code::INVALID_HANDLE)?;
        let found = loaded.functions.get(name).ok_or(code::NOT_FOUND)?.clone();
        let function = handle();
        self.functions.insert(function, (module, found));
        Ok(function)
    }

    /// Offset and size of a parameter.
    pub(crate) fn parameter(&self, function: u64, index: usize) -> Result<(usize, usize), u32> {
        let (_, function) = self.functions.get(&function).ok_or(code::INVALID_HANDLE)?;
        let parameter = function.parameters.get(index).ok_or(code::INVALID_VALUE)?;
        Ok((parameter.offset as usize, parameter.bytes as usize))
    }

    pub(crate) fn variable(&mut self, module: u64, name: &str) -> Result<(u64, u64), u32> {
        let id = self.modules.get(&module).ok_or(code::INVALID_HANDLE)?.id;
        let known = self.places.iter().find(|(_, place)| {
            matches!(&place.what, What::Variable { module: of, name: known, .. } if *of == module && known == name)
        });
        if let Some((address, place)) = known {
            return Ok((*address, place.bytes));
        }
        let facts = self.context.module(id).map_err(|error| code_of(&error))?;
        let bytes = facts.variables().iter().find(|variable| variable.name == name).ok_or(code::NOT_FOUND)?.bytes;
        let address = MADE_UP + (handle() << 20);
        let what = What::Variable { module, id, name: name.to_owned() };
        self.places.insert(address, Place { what, bytes });
        Ok((address, bytes))
    }

    /// Whether a launch is one that the driver would take.
    pub(crate) fn takes(&self, function: u64, parameters: &[u8]) -> Result<(), u32> {
        let (_, function) = self.functions.get(&function).ok_or(code::INVALID_HANDLE)?;
        let bytes = function.parameters.last().map_or(0, |last| last.offset as usize + last.bytes as usize);
        if bytes == parameters.len() { Ok(()) } else { Err(code::INVALID_VALUE) }
    }

    pub(crate) fn launch(
        &mut self,
        function: u64,
        [grid, block]: [[u32; 3]; 2],
        shared_bytes: u32,
        parameters: &[u8],
    ) -> Result<(), u32> {
        SETTINGS.called("kernel")?;
        let (module, function) = self.functions.get(&function).ok_or(code::LAUNCH_FAILED)?.clone();
        let id = self.modules.get(&module).ok_or(code::LAUNCH_FAILED)?.id;
        let given = function.parameters.iter().map(|parameter| {
            let start = parameter.offset as usize;
            Argument::Bytes(&parameters[start..start + parameter.bytes as usize])
        });
        let arguments: Vec<_> = given.collect();
        let launch = Launch { entry: &function.name, grid, block, shared_bytes, arguments: &arguments };
        let ran = self.context.launch(id, &launch).and_then(|()| self.context.finish_step());
        ran.map_err(|error| code_of(&error))
    }

    pub(crate) fn multiply(&mut self, product: &Product) -> Result<(), u32> {
        let unsigned = |number: i64| u32::try_from(number).map_err(|_| code::INVALID_VALUE);
        let matrix = |operand: &Operand| -> Result<Matrix, u32> {
            let (buffer, offset) = self.buffer(operand.address, 0)?;
            Ok(Matrix {
                buffer,
                offset,
                leading: unsigned(operand.leading)?,
                stride: operand.stride as u64,
                transpose: operand.transpose,
            })
        };
        let Product { element, shape: [m, n, k], alpha, beta, batch, .. } = *product;
        let gemm = Gemm {
            element,
            m: unsigned(m)?,
            n: unsigned(n)?,
            k: unsigned(k)?,
            alpha,
            a: matrix(&product.a)?,
            b: matrix(&product.b)?,
            beta,
            c: matrix(&product.c)?,
            batch: unsigned(batch)?,
        };
        self.context.gemm(&gemm).map_err(|error| code_of(&error))
    }
}

/// The CUDA that came with a version of PTX, as the driver counts.
fn known_version(ptx: &str) -> i32 {
    let (major, minor) = ptx.split_once('.').unwrap_or(("0", "0"));
    match (major.parse::<i32>(), minor.parse::<i32>()) {
        (Ok(major), Ok(minor)) if major >= 7 => (major + 4) * 1000 + minor * 10,
        _ => 0,
    }
}

//! What a guest holds of its device: buffers and modules by name, the budget, and the way into a snapshot and back.
//!
//! The buffers of a checkpoint go to the device before the guest's `restore` is called, whether or not it will ask for them: so what nobody
//! has asked for yet is kept in later checkpoints like everything else. Variables wait for a module of their text.

use std::collections::{BTreeMap, HashMap};

use super::failure::{Failure, Result};
use super::sections::{self, DeviceKind, DeviceSection};
use super::{Buffer, Module, OpenDevice};
use crate::device::{self, Backend, BufferId, Content, Context, DeviceError, Facts, ModuleId, Purpose, content};
use crate::plugin::Interrupter;
use crate::plugin::bindings::steadfast::job::device::Element;

const LONGEST_NAME: usize = 255;
/// What a section costs beside its bytes, so that a guest that makes buffers without end meets the limit too.
const SECTION_OVERHEAD: u64 = 512;

/// A guest's side of its device.
pub(in crate::plugin) struct Holdings {
    open_device: Option<OpenDevice>,
    interrupter: Interrupter,
    /// Bytes that buffers and variables may have together.
    limit: u64,
    /// None before the device is needed.
    context: Option<Context>,
    /// The persistent buffers, open or not.
    buffers: BTreeMap<String, Persistent>,
    /// The open modules with variables that a checkpoint keeps, by their texts' digests.
    modules: BTreeMap<String, ModuleId>,
    /// Of a checkpoint, by section: nobody has made their modules yet.
    waiting: BTreeMap<String, Vec<u8>>,
}

struct Persistent {
    id: BufferId,
    element: Element,
    bytes: u64,
    restored: bool,
    /// Whether the guest has a handle of it.
    open: bool,
}

impl Holdings {
    pub(in crate::plugin) fn new(open_device: Option<OpenDevice>, limit: u64, interrupter: Interrupter) -> Self {
        let (buffers, modules, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { open_device, interrupter, limit, context: None, buffers, modules, waiting }
    }

    /// Opens the device, if it is not open.
    pub(in crate::plugin) fn open(&mut self) -> device::Result<()> {
        if self.context.is_some() {
            return Ok(());
        }
        let Some(open_device) = &self.open_device else {
            return Err(DeviceError::Lost("there is no device here".to_owned()));
        };
        let context = Context::new(open_device()?);
        self.interrupter.attach(context.stopper());
        self.context = Some(context);
        Ok(())
    }

    pub(super) fn context(&mut self) -> Result<&mut Context> {
        self.open()?;
        self.context.as_mut().ok_or_else(|| Failure::Device(DeviceError::Lost("the device is closed".to_owned())))
    }

    /// The open device, for a call whose data borrows the guest's store; it has to be given back.
    pub(super) fn take_context(&mut self) -> Result<Context> {
        self.context()?;
        self.context.take().ok_or_else(|| Failure::Device(DeviceError::Lost("the device is in use".to_owned())))
    }

    pub(super) fn give_back_context(&mut self, context: Context) {
        self.context = Some(context);
    }

    /// Bytes of all buffers.
    pub(in crate::plugin) fn bytes(&self) -> u64 {
        self.context.as_ref().map_or(0, Context::bytes)
    }

    /// What kind of device it is, once it is open.
    pub(in crate::plugin) fn backend(&self) -> Option<Backend> {
        self.context.as_ref().map(|context| context.facts().backend)
    }

    /// What the device is, with the memory that this guest may use of it.
    pub(super) fn facts(&mut self) -> Result<Facts> {
        let limit = self.limit;
        let facts = self.context()?.facts().clone();
        Ok(Facts { memory_bytes: facts.memory_bytes.min(limit), ..facts })
    }

    pub(super) fn scratch(&mut self, bytes: u64) -> Result<Buffer> {
        let id = self.wanted(bytes).map_err(|failure| failure.about("a scratch buffer"))?;
        Ok(Buffer { id, bytes, name: None, restored: false })
    }

    pub(super) fn persistent(&mut self, name: &str, element: Element, bytes: u64) -> Result<Buffer> {
        let refuse = |why: String| Failure::argument(why).about(&format!("the buffer `{name}`"));
        if name.is_empty() || name.len() > LONGEST_NAME {
            let long = name.len();
            return Err(Failure::argument(format!(
                "the name of a persistent buffer is {long} bytes long; it must be 1 to {LONGEST_NAME}"
            )));
        }
        if let Some(known) = self.buffers.get_mut(name) {
            if known.open {
                return Err(refuse("it is open already; drop it first, or use that one".to_owned()));
            }
            if (known.element, known.bytes) != (element, bytes) {
                return Err(refuse(format!(
                    "the checkpoint has it as {}, and {} are asked for",
                    shape(known.element, known.bytes),
                    shape(element, bytes)
                )));
            }
            known.open = true;
            return Ok(Buffer { id: known.id, bytes, name: Some(name.to_owned()), restored: known.restored });
        }
        let id = self.wanted(bytes).map_err(|failure| failure.about(&format!("the buffer `{name}`")))?;
        self.buffers.insert(name.to_owned(), Persistent { id, element, bytes, restored: false, open: true });
        Ok(Buffer { id, bytes, name: Some(name.to_owned()), restored: false })
    }

    /// A buffer that the guest asks for: more than there will ever be is refused for good.
    fn wanted(&mut self, bytes: u64) -> Result<BufferId> {
        if bytes > self.limit {
            let [bytes, limit] = [bytes, self.limit].map(size);
            let text = format!("{bytes} are wanted, more than the {limit} that --device-memory allows altogether");
            return Err(Failure::argument(text));
        }
        self.allocate(bytes)
    }

    fn allocate(&mut self, bytes: u64) -> Result<BufferId> {
        let limit = self.limit;
        let variables = self.variable_bytes();
        let context = self.context()?;
        let used = context.used().saturating_add(variables);
        if bytes > limit.saturating_sub(used) {
            let [bytes, limit, used] = [bytes, limit, used].map(size);
            let text = format!("{bytes} are wanted, and of the {limit} that --device-memory allows {used} are in use");
            return Err(DeviceError::OutOfMemory(text).into());
        }
        Ok(context.allocate(bytes)?)
    }

    /// Frees a buffer whose handle is gone. A persistent one is in no later checkpoint.
    pub(super) fn drop_buffer(&mut self, buffer: Buffer) {
        if let Some(name) = &buffer.name {
            self.buffers.remove(name);
        }
        if let Some(context) = &mut self.context {
            context.free(buffer.id);
        }
    }

    /// Makes a module, whose variables go on where a checkpoint left them.
    pub(super) fn module(&mut self, text: &str) -> Result<Module> {
        let digest = sections::digest_of(text);
        if self.modules.contains_key(&digest) {
            return Err(Failure::argument(
                "a module of this very text, which has variables, is open already; drop it first, or use that one",
            ));
        }
        let context = self.context()?;
        let id = context.load(text)?;
        if context.module(id)?.variables().is_empty() {
            return Ok(Module { id, digest: None });
        }
        self.modules.insert(digest.clone(), id);
        match self.put_back(&digest, id) {
            Ok(()) => Ok(Module { id, digest: Some(digest) }),
            Err(failure) => {
                self.drop_module(Module { id, digest: Some(digest) });
                Err(failure)
            }
        }
    }

    /// Gives a module's variables what the checkpoint has of them.
    fn put_back(&mut self, digest: &str, module: ModuleId) -> Result<()> {
        let variables = self.context()?.module(module)?.variables().to_vec();
        for variable in variables {
            let section = sections::of_variable(digest, &variable.name);
            let Some(bytes) = self.waiting.remove(&section) else { continue };
            if bytes.len() as u64 != variable.bytes {
                let (name, have, size) = (&variable.name, bytes.len(), variable.bytes);
                return Err(Failure::argument(format!(
                    "the checkpoint has {have} bytes of the variable `{name}`, and it is {size} bytes large"
                )));
            }
            self.context()?.write_variable(module, &variable.name, 0, &bytes)?;
        }
        Ok(())
    }

    /// Makes a module for the driver's eyes only.
    pub(super) fn cuda_only(&mut self, text: &str) -> Result<Module> {
        let context = self.context()?;
        let backend = context.facts().backend;
        match context.load_cuda_only(text) {
            Ok(id) => Ok(Module { id, digest: None }),
            Err(DeviceError::InvalidModule(why)) if backend != Backend::Cuda => Err(Failure::Unsupported(why)),
            Err(error) => Err(error.into()),
        }
    }

    /// Frees a module whose handle is gone, and its variables with it.
    pub(super) fn drop_module(&mut self, module: Module) {
        if let Some(digest) = &module.digest {
            self.modules.remove(digest);
        }
        if let Some(context) = &mut self.context {
            context.unload(module.id);
        }
    }

    /// Waits for all that was ordered, and says what went wrong.
    pub(in crate::plugin) fn finish(&mut self) -> device::Result<()> {
        self.context.as_mut().map_or(Ok(()), Context::finish_step)
    }

    /// Bytes that a snapshot will have of it.
    pub(in crate::plugin) fn state_bytes(&self) -> u64 {
        let buffers = self.buffers.values().map(|buffer| buffer.bytes.saturating_add(SECTION_OVERHEAD));
        buffers.fold(self.variable_bytes(), u64::saturating_add)
    }

    fn variable_bytes(&self) -> u64 {
        let waiting = self.waiting.values().map(|bytes| bytes.len() as u64);
        let open = self.modules.values().filter_map(|module| self.context.as_ref()?.module(*module).ok());
        let open = open.flat_map(|module| module.variables().iter().map(|variable| variable.bytes));
        waiting.chain(open).fold(0, |sum, bytes| sum.saturating_add(bytes).saturating_add(SECTION_OVERHEAD))
    }

    /// All that a checkpoint keeps. The memory of `reuse`, an earlier snapshot's, is used again for sections of the same names.
    pub(in crate::plugin) fn freeze(&mut self, reuse: Vec<DeviceSection>) -> device::Result<Vec<DeviceSection>> {
        self.serve(Purpose::Save);
        let frozen = self.frozen(reuse);
        self.serve(Purpose::Guest);
        frozen
    }

    /// Says what the next operations are for.
    pub(super) fn serve(&mut self, purpose: Purpose) {
        if let Some(context) = &mut self.context {
            context.serve(purpose);
        }
    }

    fn frozen(&mut self, reuse: Vec<DeviceSection>) -> device::Result<Vec<DeviceSection>> {
        let Some(context) = &mut self.context else { return Ok(Vec::new()) };
        let mut freezer = Freezer::new(reuse);
        for (name, buffer) in &self.buffers {
            let name = sections::of_buffer(buffer.element, name);
            freezer.add(DeviceKind::Buffer, name, |spare| context.begin_read(buffer.id, spare))?;
        }
        for (digest, module) in &self.modules {
            for variable in context.module(*module)?.variables().to_vec() {
                let name = sections::of_variable(digest, &variable.name);
                freezer.add(DeviceKind::Variable, name, |spare| {
                    let mut memory = content::memory(spare.into_iter().next(), variable.bytes)?;
                    context.read_variable(*module, &variable.name, 0, &mut memory)?;
                    Ok(memory.into())
                })?;
            }
        }
        for (name, waiting) in &self.waiting {
            freezer.add(DeviceKind::Variable, name.clone(), |spare| {
                let mut memory = content::memory(spare.into_iter().next(), waiting.len() as u64)?;
                memory.copy_from_slice(waiting);
                Ok(memory.into())
            })?;
        }
        // What went wrong before is told now, and no guest computes on with what a checkpoint may not hold.
        context.finish_step()?;
        Ok(freezer.frozen)
    }

    /// Takes over what a checkpoint has, before the guest asks for any of it.
    pub(in crate::plugin) fn thaw(&mut self, frozen: &[DeviceSection]) -> device::Result<()> {
        if frozen.is_empty() {
            return Ok(());
        }
        self.open()?;
        self.serve(Purpose::Restore);
        let taken = self.take_over(frozen);
        self.serve(Purpose::Guest);
        taken.map_err(|failure| match failure {
            Failure::Device(error) => error,
            other => DeviceError::Lost(format!("{other:?}")),
        })
    }

    fn take_over(&mut self, frozen: &[DeviceSection]) -> Result<()> {
        for DeviceSection { kind, name: section, content } in frozen {
            match kind {
                DeviceKind::Buffer => self.thaw_buffer(section, content)?,
                // It waits even where no module will come: a later plugin may have it again.
                DeviceKind::Variable => drop(self.waiting.insert(section.clone(), content.whole()?.into_owned())),
            }
        }
        // Nothing of it may be under way when the snapshot's memory is used for something else.
        Ok(self.context()?.finish_step()?)
    }

    fn thaw_buffer(&mut self, section: &str, content: &Content) -> Result<()> {
        let Some((element, name)) = sections::buffer_of(section) else {
            return Err(Failure::argument(format!("the checkpoint has a buffer of no known kind, `{section}`")));
        };
        if self.buffers.contains_key(name) {
            return Err(Failure::argument(format!("the checkpoint has two buffers that are called `{name}`")));
        }
        let bytes = content.len();
        let id = self.allocate(bytes).map_err(|failure| failure.about(&format!("the buffer `{name}`")))?;
        let mut offset = 0;
        for part in content.parts() {
            let part = part?;
            self.context()?.write(id, offset, part)?;
            offset += part.len() as u64;
        }
        self.buffers.insert(name.to_owned(), Persistent { id, element, bytes, restored: true, open: false });
        Ok(())
    }
}

/// Fills the sections of a snapshot, in memory that an earlier one left behind: fresh pages of a large buffer cost more than the copy.
struct Freezer {
    spare: HashMap<(DeviceKind, String), Vec<Vec<u8>>>,
    frozen: Vec<DeviceSection>,
}

impl Freezer {
    fn new(reuse: Vec<DeviceSection>) -> Self {
        let spare = reuse.into_iter().map(|section| ((section.kind, section.name), section.content.into_memory()));
        Self { spare: spare.collect(), frozen: Vec::new() }
    }

    fn add(
        &mut self,
        kind: DeviceKind,
        name: String,
        read: impl FnOnce(Vec<Vec<u8>>) -> device::Result<Content>,
    ) -> device::Result<()> {
        let ((kind, name), spare) =
            self.spare.remove_entry(&(kind, name.clone())).unwrap_or_else(|| ((kind, name), Vec::new()));
        let content = read(spare)?;
        self.frozen.push(DeviceSection { kind, name, content });
        Ok(())
    }
}

fn shape(element: Element, bytes: u64) -> String {
    format!("{bytes} bytes of {}", sections::element_name(element))
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes).display().iec().to_string()
}

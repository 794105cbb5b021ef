//! Between the exports of the component and a [`Plugin`]: what `plugin!` calls. Not for plugins to call themselves.

use std::cell::RefCell;

use crate::bindings::steadfast::job::{state as wit_state, types as wit};
use crate::state::{Reader, Sink, Source, Writer};
use crate::{Error, Job, Plugin, Result, config};

/// The one instance of the plugin in a component: empty until `start` or `restore`.
pub type Slot<P> = RefCell<Option<P>>;

/// `start` of the component.
pub fn start<P: Plugin>(slot: &Slot<P>, job: &Job, json: &str) -> Result<(), wit::Error> {
    let plugin = config::parse(json).and_then(|config| P::start(job, config))?;
    *slot.borrow_mut() = Some(plugin);
    Ok(())
}

/// `step` of the component.
pub fn step<P: Plugin>(slot: &Slot<P>) -> Result<wit::Outcome, wit::Error> {
    let mut slot = slot.borrow_mut();
    let plugin = slot.as_mut().ok_or_else(not_started)?;
    Ok(plugin.step()?.into())
}

/// `snapshot` of the component.
pub fn snapshot<P: Plugin>(slot: &Slot<P>, mut into: &wit_state::Writer) -> Result<u32, wit::Error> {
    let slot = slot.borrow();
    let plugin = slot.as_ref().ok_or_else(not_started)?;
    plugin.snapshot(&mut Writer::new(&mut into))?;
    Ok(P::STATE_VERSION)
}

/// `restore` of the component.
pub fn restore<P: Plugin>(slot: &Slot<P>, job: &Job, json: &str, from: &wit_state::Reader) -> Result<(), wit::Error> {
    let plugin = config::parse(json).and_then(|config| P::restore(job, config, &Reader::new(from)))?;
    *slot.borrow_mut() = Some(plugin);
    Ok(())
}

/// Whether a plugin reads what it writes.
#[must_use]
pub const fn reads_its_own<P: Plugin>() -> bool {
    let mut index = 0;
    while index < P::READS.len() {
        if P::READS[index] == P::STATE_VERSION {
            return true;
        }
        index += 1;
    }
    false
}

/// How many bytes [`state_versions`] has.
#[must_use]
pub const fn state_versions_len<P: Plugin>() -> usize {
    4 * (1 + P::READS.len())
}

/// The section `steadfast:state-versions`: the version that is written, then those that are read, four bytes each.
#[must_use]
pub const fn state_versions<P: Plugin, const LEN: usize>() -> [u8; LEN] {
    let mut section = [0; LEN];
    let mut at = 0;
    while at < LEN {
        let version = if at < 4 { P::STATE_VERSION } else { P::READS[at / 4 - 1] };
        section[at] = version.to_le_bytes()[at % 4];
        at += 1;
    }
    section
}

/// Only a host that breaks the contract gets to see this one.
fn not_started() -> Error {
    Error::invalid("called before `start` or `restore`")
}

impl Sink for &wit_state::Writer {
    fn write(&mut self, section: &str, bytes: &[u8]) {
        wit_state::Writer::write(self, section, bytes);
    }
}

impl Source for wit_state::Reader {
    fn version(&self) -> u32 {
        self.version()
    }

    fn sections(&self) -> Vec<String> {
        self.sections()
    }

    fn size(&self, section: &str) -> Option<u64> {
        self.size(section)
    }

    fn read(&self, section: &str, offset: u64, len: u64) -> Vec<u8> {
        self.read(section, offset, len)
    }
}

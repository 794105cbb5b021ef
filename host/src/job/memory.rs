//! Whether what an attempt may need fits into the memory that it is allowed.
//!
//! A container that goes over its limit is ended by SIGKILL, without a word and hours in. So the sum is made before the first
//! step: the guest, the buffers of its device, a copy of its state (what the device holds included) while that is saved, as much again where
//! the volume is a bucket whose mount may hold the file that is being written, and the host. The guest's outputs are not in the sum: scratch
//! space should be a disk. A GPU has memory of its own: of its buffers only the copy is in the sum.

use bytesize::ByteSize;

use super::RunError;
use super::spec::{JobSpec, PluginSource};
use crate::platform::{Allowed, Allower, memory_allowed};
use crate::plugin;

/// The guest's memories and tables where nothing else is said.
const USUAL_GUEST: u64 = 2 << 30;
/// The device's buffers, at the most, where nothing else is said.
const USUAL_DEVICE: u64 = 16 << 30;
/// With less than this hardly any guest starts.
const SMALLEST_GUEST: u64 = 16 << 20;
/// The host by itself (14 MiB resident, and room for what its libraries keep), and for each core the chunks and contexts of a save.
const HOST: u64 = 64 << 20;
const HOST_PER_CORE: u64 = 4 << 20;

/// How memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Bytes that the guest's memories and tables may have together.
    pub guest: u64,
    /// Bytes that buffers of the device may have together.
    pub device: u64,
    /// Bytes that one snapshot of the guest's state may have.
    pub state: u64,
    /// Bytes for the program itself.
    pub host: u64,
    /// How often the state is there beside the guest.
    copies: u64,
    /// Whether a device is used, and whose memory its buffers take.
    buffers: Buffers,
    /// Whether the guest has less than usual, because there is less.
    lowered: bool,
}

/// Whose memory buffers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffers {
    /// Nobody's: the plugin uses no device.
    None,
    /// The host's: they are in the sum.
    OfHost,
    /// The device's.
    OfDevice,
}

/// Limits that somebody asked for, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of the guest's memories and tables.
    pub guest: Option<u64>,
    /// Of the device's buffers.
    pub device: Option<u64>,
    /// Of a snapshot.
    pub state: Option<u64>,
}

/// What has to be kept in mind about the place.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How much the attempt may use, if that is known.
    pub allowed: Option<Allowed>,
    /// Whether a file that is being written to the volume may lie in our memory.
    pub volume_in_memory: bool,
    /// Whether the plugin uses a device.
    pub device: bool,
    /// Bytes that buffers may have together on a device with memory of its own; else they take ours.
    pub own_memory: Option<u64>,
    /// How many threads save.
    pub cores: u64,
}

impl Room {
    /// What there is on this machine, or in this container, for this plugin.
    pub fn here(plugin: &PluginSource, volume_in_memory: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let device = match plugin {
            // Whatever else is wrong with the file is said when it is loaded.
            PluginSource::File(file) => plugin::read(file).is_ok_and(|bytes| plugin::imports_device(&bytes)),
            // Only the registry knows what it will be, and it may be this.
            PluginSource::Registry(_) => true,
        };
        Self { allowed: memory_allowed(), volume_in_memory, device, own_memory: None, cores }
    }
}

impl MemoryPlan {
    /// Divides what is allowed, and refuses what does not fit.
    pub fn make(spec: &JobSpec, room: Room) -> Result<Self, RunError> {
        let (guest, device, state) = (spec.memory_limit, spec.device_memory, spec.state_limit);
        let plan = Self::divide(Limits { guest, device, state }, room);
        match room.allowed {
            Some(allowed) if plan.sum() > allowed.bytes => plan.does_not_fit(spec, allowed).map(|()| plan),
            _ => Ok(plan),
        }
    }

    /// Divides what is allowed: as the limits say, else so that it fits.
    pub fn divide(limits: Limits, room: Room) -> Self {
        let host = HOST + HOST_PER_CORE * room.cores;
        let copies = 1 + u64::from(room.volume_in_memory);
        // Sums that leave the range are as good as endless.
        let times = |bytes: u64| bytes.saturating_mul(copies);
        let left = room.allowed.map_or(u64::MAX, |allowed| allowed.bytes).saturating_sub(host);
        if let (true, Some(own_memory)) = (room.device, room.own_memory) {
            return Self::divide_beside(limits, own_memory, (host, left, copies));
        }
        // What guest and device may have together: each byte of theirs may be there again in a copy of the state.
        let both = match limits.state {
            Some(state) => left.saturating_sub(times(state)),
            None => left / (1 + copies),
        };
        let guest = limits.guest.unwrap_or_else(|| {
            let fits = match (room.device, limits.device) {
                (false, _) => both,
                (true, Some(device)) => both.saturating_sub(device),
                (true, None) => both / 2,
            };
            whole_mebibytes(fits).clamp(SMALLEST_GUEST, USUAL_GUEST)
        });
        let device = limits.device.unwrap_or_else(|| match room.device {
            true => whole_mebibytes(both.saturating_sub(guest)).clamp(SMALLEST_GUEST, USUAL_DEVICE),
            // A plugin that comes later may use one after all.
            false => guest,
        });
        let state = limits.state.unwrap_or(if room.device { guest.saturating_add(device) } else { guest });
        let lowered = limits.guest.is_none() && guest < USUAL_GUEST;
        let buffers = if room.device { Buffers::OfHost } else { Buffers::None };
        Self { guest, device, state, host, copies, buffers, lowered }
    }

    /// The same for a device with memory of its own: the state may be as large as what is left of ours for its copies.
    fn divide_beside(limits: Limits, own_memory: u64, (host, left, copies): (u64, u64, u64)) -> Self {
        let for_guest = match limits.state {
            Some(state) => left.saturating_sub(state.saturating_mul(copies)),
            None => left / (1 + copies),
        };
        let guest = limits.guest.unwrap_or(whole_mebibytes(for_guest).clamp(SMALLEST_GUEST, USUAL_GUEST));
        let device = limits.device.unwrap_or(own_memory);
        let fits = whole_mebibytes(left.saturating_sub(guest) / copies).max(guest);
        let state = limits.state.unwrap_or(guest.saturating_add(device).min(fits));
        let lowered = limits.guest.is_none() && guest < USUAL_GUEST;
        Self { guest, device, state, host, copies, buffers: Buffers::OfDevice, lowered }
    }

    fn sum(&self) -> u64 {
        self.work().saturating_add(self.state.saturating_mul(self.copies)).saturating_add(self.host)
    }

    /// The guest and, if it counts, the device.
    fn work(&self) -> u64 {
        if self.buffers == Buffers::OfHost { self.guest.saturating_add(self.device) } else { self.guest }
    }

    /// A container's limit is kept by SIGKILL. A machine has swap space, and other programs whose memory nobody knows: there it is
    /// only said.
    fn does_not_fit(&self, spec: &JobSpec, allowed: Allowed) -> Result<(), RunError> {
        let text = self.to_string();
        match allowed.by {
            Allower::Container => {
                let instead = self.lower_limits(spec, allowed.bytes.saturating_sub(self.host));
                Err(RunError::Memory { allowed: allowed.bytes, needed: self.sum(), parts: text, instead })
            }
            Allower::Machine => {
                let (has, needed) = (in_bytes(allowed.bytes), in_bytes(self.sum()));
                tracing::warn!("This machine has {has} of memory, and this attempt may need {needed}: {text}");
                Ok(())
            }
        }
    }

    /// The options with which it would fit, if there are any.
    fn lower_limits(&self, spec: &JobSpec, left: u64) -> Option<String> {
        let for_both = whole_mebibytes(left / (1 + self.copies));
        let for_state = whole_mebibytes(left.saturating_sub(self.work()) / self.copies);
        if spec.state_limit.is_some() {
            return (for_state > 0).then(|| format!("say --state-limit {}MiB or less", for_state >> 20));
        }
        let both = match (for_both >= SMALLEST_GUEST, self.buffers == Buffers::OfHost) {
            (false, _) => return None,
            (true, false) => format!("say --memory-limit {}MiB or less", for_both >> 20),
            (true, true) => format!("say --memory-limit and --device-memory, {}MiB or less together", for_both >> 20),
        };
        if for_state == 0 {
            return Some(both);
        }
        Some(format!("{both}, or, if the state stays that small, --state-limit {}MiB", for_state >> 20))
    }

    /// For the opening block.
    #[must_use]
    pub fn limits(&self) -> String {
        let why = if self.lowered { ", of what is allowed here" } else { "" };
        let mut text = format!("guest memory {}{why}", in_bytes(self.guest));
        if self.buffers != Buffers::None {
            text.push_str(&format!(" · device memory {}", in_bytes(self.device)));
        }
        let whole = if self.buffers == Buffers::None { self.guest } else { self.guest.saturating_add(self.device) };
        if self.state != whole {
            text.push_str(&format!(" · state {}", in_bytes(self.state)));
        }
        text
    }
}

impl std::fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [guest, device, state, host] = [self.guest, self.device, self.state, self.host].map(in_bytes);
        write!(f, "{guest} for the guest (--memory-limit), ")?;
        if self.buffers == Buffers::OfHost {
            write!(f, "{device} for buffers of its device (--device-memory), ")?;
        }
        write!(f, "{state} for the copy of its state that is saved (--state-limit)")?;
        if self.copies > 1 {
            write!(f, ", as much again for the file while the bucket's mount holds it")?;
        }
        write!(f, ", {host} for the host")
    }
}

/// A size for people.
pub(in crate::job) fn in_bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

fn whole_mebibytes(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    const MIB: u64 = 1 << 20;

    fn room(mebibytes: u64, by: Allower) -> Room {
        let allowed = Some(Allowed { bytes: mebibytes * MIB, by });
        Room { allowed, volume_in_memory: false, device: false, own_memory: None, cores: 4 }
    }

    fn limits(memory: Option<u64>, state: Option<u64>) -> JobSpec {
        let bytes = |mebibytes: Option<u64>| mebibytes.map(|mebibytes| mebibytes * MIB);
        JobSpec { memory_limit: bytes(memory), state_limit: bytes(state), ..JobSpec::new("a.wasm") }
    }

    fn planned(spec: &JobSpec, room: Room) -> (u64, u64) {
        let plan = MemoryPlan::make(spec, room).unwrap();
        (plan.guest / MIB, plan.state / MIB)
    }

    fn refused(spec: &JobSpec, room: Room) -> String {
        let error = MemoryPlan::make(spec, room).unwrap_err();
        assert_eq!(error.exit_code().code(), 2);
        format!("{error}\nhint: {}", error.hint().unwrap())
    }

    #[test]
    fn without_options_the_guest_has_what_fits() {
        let usual = limits(None, None);
        assert_eq!(planned(&usual, Room { allowed: None, ..room(0, Allower::Machine) }), (2048, 2048));
        assert_eq!(planned(&usual, room(16 << 10, Allower::Container)), (2048, 2048));
        assert_eq!(planned(&usual, room(1104, Allower::Container)), (512, 512));
        let bucket = Room { volume_in_memory: true, ..room(1104, Allower::Container) };
        assert_eq!(planned(&usual, bucket), (341, 341));
        assert_eq!(planned(&limits(None, Some(100)), room(1104, Allower::Container)), (924, 100));
    }

    #[test]
    fn a_device_has_what_the_guest_leaves_and_is_in_the_copies_too() {
        let planned = |spec: &JobSpec, mebibytes: u64| {
            let room = Room { device: true, ..room(mebibytes, Allower::Container) };
            let plan = MemoryPlan::make(spec, room).unwrap();
            [plan.guest / MIB, plan.device / MIB, plan.state / MIB]
        };
        let usual = limits(None, None);
        assert_eq!(planned(&usual, 80 + 1024), [256, 256, 512]);
        assert_eq!(planned(&usual, 80 + (16 << 10)), [2048, 6144, 8192]);
        assert_eq!(planned(&usual, 80 + (128 << 10)), [2048, 16 << 10, 18 << 10]);
        assert_eq!(planned(&limits(Some(100), None), 80 + 1024), [100, 412, 512]);
        assert_eq!(planned(&limits(None, Some(24)), 80 + 1024), [500, 500, 24]);
        let given = JobSpec { device_memory: Some(400 * MIB), ..usual };
        assert_eq!(planned(&given, 80 + 1024), [112, 400, 512]);
        let room = Room { device: true, ..room(512, Allower::Container) };
        insta::assert_snapshot!(refused(&given, room), @r#"
        this container allows 512.0 MiB of memory, and this attempt may need 912.0 MiB: 16.0 MiB for the guest (--memory-limit), 400.0 MiB for buffers of its device (--device-memory), 416.0 MiB for the copy of its state that is saved (--state-limit), 80.0 MiB for the host
        hint: allow the container 912 MiB; or say --memory-limit and --device-memory, 216MiB or less together, or, if the state stays that small, --state-limit 16MiB
        "#);
        let plan = MemoryPlan::make(&given, Room { allowed: None, ..room }).unwrap();
        assert_eq!(plan.limits(), "guest memory 2.0 GiB · device memory 400.0 MiB");
    }

    #[test]
    fn a_device_with_memory_of_its_own_is_in_the_copies_alone() {
        let planned = |spec: &JobSpec, mebibytes: u64, own: u64| {
            let room = room(mebibytes, Allower::Container);
            let plan = MemoryPlan::make(spec, Room { device: true, own_memory: Some(own * MIB), ..room }).unwrap();
            ([plan.guest / MIB, plan.device / MIB, plan.state / MIB], plan.limits())
        };
        let usual = limits(None, None);
        let (plan, shown) = planned(&usual, 80 + 8192, 5000);
        assert_eq!(
            (plan, shown.as_str()),
            ([2048, 5000, 6144], "guest memory 2.0 GiB · device memory 4.9 GiB · state 6.0 GiB")
        );
        assert_eq!(planned(&usual, 80 + (64 << 10), 5000).0, [2048, 5000, 7048]);
        assert_eq!(planned(&usual, 80 + 1024, 80_000).0, [512, 80_000, 512]);
        assert_eq!(planned(&limits(Some(100), Some(300)), 80 + 1024, 5000).0, [100, 5000, 300]);
        let given = JobSpec { device_memory: Some(400 * MIB), ..usual };
        assert_eq!(planned(&given, 80 + 8192, 5000).0, [2048, 400, 2448]);
    }

    #[test]
    fn options_that_fit_are_kept() {
        assert_eq!(planned(&limits(Some(512), None), room(1104, Allower::Container)), (512, 512));
        assert_eq!(planned(&limits(Some(900), Some(100)), room(1104, Allower::Container)), (900, 100));
        assert_eq!(planned(&limits(Some(4096), None), room(4096, Allower::Machine)), (4096, 4096), "only said");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_figures() {
        insta::assert_snapshot!(refused(&limits(Some(1024), None), room(512, Allower::Container)), @r#"
        this container allows 512.0 MiB of memory, and this attempt may need 2.1 GiB: 1.0 GiB for the guest (--memory-limit), 1.0 GiB for the copy of its state that is saved (--state-limit), 80.0 MiB for the host
        hint: allow the container 2128 MiB; or say --memory-limit 216MiB or less
        "#);
        let bucket = Room { volume_in_memory: true, ..room(1024, Allower::Container) };
        insta::assert_snapshot!(refused(&limits(Some(512), None), bucket), @r#"
        this container allows 1.0 GiB of memory, and this attempt may need 1.6 GiB: 512.0 MiB for the guest (--memory-limit), 512.0 MiB for the copy of its state that is saved (--state-limit), as much again for the file while the bucket's mount holds it, 80.0 MiB for the host
        hint: allow the container 1616 MiB; or say --memory-limit 314MiB or less, or, if the state stays that small, --state-limit 216MiB
        "#);
        insta::assert_snapshot!(refused(&limits(None, Some(1024)), room(512, Allower::Container)), @r#"
        this container allows 512.0 MiB of memory, and this attempt may need 1.1 GiB: 16.0 MiB for the guest (--memory-limit), 1.0 GiB for the copy of its state that is saved (--state-limit), 80.0 MiB for the host
        hint: allow the container 1120 MiB; or say --state-limit 416MiB or less
        "#);
        insta::assert_snapshot!(refused(&limits(None, None), room(64, Allower::Container)), @r#"
        this container allows 64.0 MiB of memory, and this attempt may need 112.0 MiB: 16.0 MiB for the guest (--memory-limit), 16.0 MiB for the copy of its state that is saved (--state-limit), 80.0 MiB for the host
        hint: allow the container 112 MiB
        "#);
        insta::assert_snapshot!(refused(&limits(Some(u64::MAX >> 20), Some(u64::MAX >> 20)), room(64, Allower::Container)), @r#"
        this container allows 64.0 MiB of memory, and this attempt may need 16.0 EiB: 16.0 EiB for the guest (--memory-limit), 16.0 EiB for the copy of its state that is saved (--state-limit), 80.0 MiB for the host
        hint: allow the container 17592186044416 MiB
        "#);
    }
}

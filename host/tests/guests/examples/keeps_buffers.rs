//! Right, and all of its state is on the device: `{"steps": 20, "kernels": true}`. What a kernel, a product and random numbers make of two
//! persistent buffers and a module's variable depends on every step before; a third buffer is asked for again only some steps after a resume.

use std::path::Path;

use serde::{Deserialize, Serialize};
use steadfast_guest::device::{Buffer, Gemm, Module};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, plugin};
use test_guests::{append, counted};

/// A matrix of so many rows and columns.
const SIDE: u32 = 32;
const N: u32 = SIDE * SIDE;
const LATE: [u16; 3] = [17, 0, 42];

/// Decays `values` towards `noise`. The first thread counts launches in a variable of the module, and notes each in `counts`.
const PTX: &str = "
.version 8.2
.target sm_75
.address_size 64
.global .u32 launches = 5;
.visible .entry advance(.param .u64 values, .param .u64 noise, .param .u64 counts, .param .f32 decay, .param .u32 n) {
    .reg .pred %outside, %other;
    .reg .b32 %block, %threads, %thread, %i, %n, %count, %slot;
    .reg .b64 %values, %noise, %counts, %offset;
    .reg .f32 %value, %pull, %decay;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %threads, %thread;
    ld.param.u32 %n, [n];
    setp.ge.u32 %outside, %i, %n;
    @%outside bra DONE;
    ld.param.u64 %values, [values];
    ld.param.u64 %noise, [noise];
    cvta.to.global.u64 %values, %values;
    cvta.to.global.u64 %noise, %noise;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %values, %values, %offset;
    add.u64 %noise, %noise, %offset;
    ld.global.f32 %value, [%values];
    ld.global.f32 %pull, [%noise];
    ld.param.f32 %decay, [decay];
    fma.rn.f32 %value, %value, %decay, %pull;
    st.global.f32 [%values], %value;
    setp.ne.u32 %other, %i, 0;
    @%other bra DONE;
    ld.global.u32 %count, [launches];
    add.u32 %count, %count, 1;
    st.global.u32 [launches], %count;
    ld.param.u64 %counts, [counts];
    cvta.to.global.u64 %counts, %counts;
    and.b32 %slot, %count, 63;
    mul.wide.u32 %offset, %slot, 4;
    add.u64 %counts, %counts, %offset;
    st.global.u32 [%counts], %count;
DONE:
    ret;
}";

#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    /// Without, a product alone does the work.
    kernels: bool,
    /// One more buffer, which is only kept.
    extra_kib: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, kernels: true, extra_kib: 0 }
    }
}

#[derive(Serialize, Deserialize)]
struct KeepsBuffers {
    step: u64,
    seed: u64,
    values: Buffer<f32>,
    counts: Buffer<u32>,
    #[serde(skip)]
    late: Buffer<u16>,
    #[serde(skip)]
    #[expect(dead_code, reason = "held, so that it is kept")]
    extra: Option<Buffer<u8>>,
    #[serde(skip)]
    noise: Buffer<f32>,
    #[serde(skip)]
    kernels: Option<Module>,
    #[serde(skip)]
    steps: u64,
}

impl KeepsBuffers {
    /// What is made anew in every attempt.
    fn equip(&mut self, config: Config) -> Result<()> {
        self.steps = config.steps;
        self.noise = Buffer::scratch(N.into())?;
        self.kernels = config.kernels.then(|| Module::from_ptx(PTX)).transpose()?;
        Ok(())
    }

    fn mix(&self) -> Result<()> {
        self.noise.fill_normal(self.seed, self.step * u64::from(N))?;
        let a = self.noise.matrix(SIDE, SIDE);
        Gemm { a, b: a.t(), c: self.values.matrix(SIDE, SIDE), alpha: 0.001, beta: 0.5 }.run()?;
        let Some(kernels) = &self.kernels else { return Ok(()) };
        let advance = kernels.kernel("advance").grid(N.div_ceil(128)).block(128);
        advance.arg(&self.values).arg(&self.noise).arg(&self.counts).arg(0.75f32).arg(N).launch()?;
        Ok(())
    }

    /// It is in every checkpoint, whether or not somebody has asked for it.
    fn look_at_late(&mut self) -> Result<()> {
        if self.step % 4 == 3 && self.late.is_empty() {
            self.late = Buffer::persistent("late", LATE.len() as u64)?;
            if !self.late.restored() {
                return Err(Error::invalid("the late buffer was not kept"));
            }
        }
        match self.late.is_empty() || self.late.read()? == LATE {
            true => Ok(()),
            false => Err(Error::invalid("the late buffer has another content")),
        }
    }

    /// To a file and back, past the guest.
    fn store(&self) -> Result<()> {
        self.values.store("/output/values.f32", 8)?;
        self.noise.load("/output/values.f32", 8)?;
        let bits = |buffer: &Buffer<f32>| Ok::<Vec<u32>, Error>(buffer.read()?.into_iter().map(f32::to_bits).collect());
        match bits(&self.values)? == bits(&self.noise)? && Path::new("/output/values.f32").is_file() {
            true => Ok(()),
            false => Err(Error::invalid("the file has another content than the buffer")),
        }
    }
}

impl Plugin for KeepsBuffers {
    type Config = Config;

    fn start(job: &Job, config: Config) -> Result<Self> {
        let (values, counts) = (Buffer::persistent("values", N.into())?, Buffer::persistent("counts", 64)?);
        let late = Buffer::persistent("late", LATE.len() as u64)?;
        late.write(&LATE)?;
        let extra = (config.extra_kib > 0).then(|| Buffer::persistent("extra", config.extra_kib << 10)).transpose()?;
        let (noise, kernels) = (Buffer::default(), None);
        let mut guest = Self { step: 0, seed: job.seed, values, counts, late, extra, noise, kernels, steps: 0 };
        guest.equip(config)?;
        Ok(guest)
    }

    fn resumed(&mut self, _job: &Job, config: Config) -> Result<()> {
        self.equip(config)
    }

    fn step(&mut self) -> Result<Outcome> {
        self.mix()?;
        self.look_at_late()?;
        let values = self.values.range(..4).read()?;
        append("steps.log", &format!("{} {values:?} {:?}", self.step, self.counts.range(6..9).read()?))?;
        self.step += 1;
        if self.step == self.steps {
            self.store()?;
        }
        Ok(counted(self.step, self.steps))
    }
}

plugin!(KeepsBuffers);

//! Heat that spreads through a box: the heat equation on a grid of cells in two large buffers of the device, one explicit step of time a step.
//!
//! Begins cold with a few hot balls, placed by the job's seed; the surface stays cold. Every so many steps the middle of the box
//! becomes a picture in `/output/slice-….png`, and in the end all temperatures are in `/output/temperature.f32`, x fastest.
//!
//! The buffers are the state: they are far larger than anything that passes through the guest.

mod box_of_cells;
mod picture;

use serde::{Deserialize, Serialize};
use steadfast_guest::device::{Buffer, Module};
use steadfast_guest::{Error, Job, Outcome, Plugin, Result, check_config, metric, output, plugin};

use box_of_cells::BoxOfCells;

const KERNELS: &str = include_str!("../kernels/heat.ptx");
/// Threads in a block, along x, y and z: whole warps along x, where cells lie side by side.
const BLOCK: (u32, u32, u32) = (32, 4, 2);

/// How large the box is, and how long it is watched.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Cells along x, y and z.
    cells: [u32; 3],
    steps: u64,
    /// Diffusivity × time step / cell width². Explicit steps are stable up to 1/6.
    rate: f32,
    /// Steps between two pictures.
    picture_every: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { cells: [128, 128, 128], steps: 1000, rate: 0.15, picture_every: 100 }
    }
}

impl Config {
    fn checked(self) -> Result<Self> {
        check_config(&[
            ("cells", self.cells.iter().all(|along| (3..=4096).contains(along)), "between 3 and 4096 along each axis"),
            ("steps", self.steps >= 1, "at least 1"),
            ("rate", self.rate > 0.0 && self.rate <= 1.0 / 6.0, "above 0 and at most 1/6"),
            ("picture_every", self.picture_every >= 1, "at least 1"),
        ])
        .map(|()| self)
    }
}

/// A box on its way to being cold.
#[derive(Serialize, Deserialize)]
struct Heat {
    config: Config,
    step: u64,
    /// Temperatures from 0 (cold) to 1.
    now: Buffer<f32>,
    /// Where the next step's go; then the two change places.
    next: Buffer<f32>,
    #[serde(skip)]
    kernels: Module,
}

impl Plugin for Heat {
    type Config = Config;

    fn start(job: &Job, config: Config) -> Result<Self> {
        let config = config.checked()?;
        let cells = BoxOfCells::new(config.cells);
        let now = Buffer::persistent("one", cells.count())?;
        let next = Buffer::persistent("other", cells.count())?;
        for (z, plane) in cells.planes(job.seed) {
            now.range(cells.plane(z)).write(&plane)?;
        }
        Ok(Self { config, step: 0, now, next, kernels: Module::from_ptx(KERNELS)? })
    }

    fn resumed(&mut self, _job: &Job, config: Config) -> Result<()> {
        let config = config.checked()?;
        if config.cells != self.config.cells {
            return Err(Error::invalid("configuration, at `cells`: the box that is being watched has another size"));
        }
        self.config = config;
        self.kernels = Module::from_ptx(KERNELS)?;
        Ok(())
    }

    fn step(&mut self) -> Result<Outcome> {
        self.diffuse()?;
        self.step += 1;
        let done = self.step >= self.config.steps;
        if done || self.step.is_multiple_of(self.config.picture_every) {
            self.take_picture()?;
        }
        if !done {
            return Ok(Outcome::progress(self.step, self.config.steps));
        }
        self.now.store("/output/temperature.f32", 0)?;
        Ok(Outcome::done(format!("{} cells after {} steps", self.now.len(), self.step)))
    }
}

impl Heat {
    fn diffuse(&mut self) -> Result<()> {
        let [x, y, z] = self.config.cells;
        let blocks = (x.div_ceil(BLOCK.0), y.div_ceil(BLOCK.1), z.div_ceil(BLOCK.2));
        let launch = self.kernels.kernel("diffuse").grid(blocks).block(BLOCK).arg(&self.now).arg(&self.next);
        launch.arg(x).arg(y).arg(z).arg(self.config.rate).launch()?;
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(())
    }

    fn take_picture(&self) -> Result<()> {
        let cells = BoxOfCells::new(self.config.cells);
        let plane = self.now.range(cells.plane(self.config.cells[2] / 2)).read()?;
        metric("hottest", plane.iter().copied().fold(0.0, f32::max).into());
        let [width, height, _] = self.config.cells;
        picture::write(&output(&format!("slice-{:06}.png", self.step)), &plane, width, height)
    }
}

plugin!(Heat);

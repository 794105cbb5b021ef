//! How long a kernel takes from its text to the end of its first launch.

use std::path::Path;

use anyhow::{Context as _, Result};
use steadfast::device::{BufferId, Context, Launch};

use super::measured::{Form, Measured, measured};
use super::subject::device;
use crate::measure::{Row, median, quickest, seconds};
use crate::places;

/// Of launches from the cache the quickest of so many counts.
const LAUNCHES_FROM_CACHE: usize = 9;

/// In seconds, one for each kernel alone in its module.
#[derive(Default)]
struct Times {
    /// As it is when a plugin first comes to a machine.
    fresh: Vec<f64>,
    /// With its code in the cache, as the first thing that a new device does …
    first: Vec<f64>,
    /// … and on one that is in use.
    cached: Vec<f64>,
}

impl Times {
    /// With a cache below this folder.
    fn of(form: Form, folder: &Path) -> Result<Self> {
        let mut times = Self::default();
        for (kernel, text) in alone()? {
            let cache = folder.join(format!("{}-{form:?}", kernel.entry));
            let open = || device(1, form, Some(&cache));
            let on_a_new_device = || first_launch(&kernel, &text, &mut open()?);
            times.fresh.push(on_a_new_device()?);
            times.first.push(quickest(LAUNCHES_FROM_CACHE, on_a_new_device)?);
            let mut device = open()?;
            times.cached.push(quickest(LAUNCHES_FROM_CACHE, || first_launch(&kernel, &text, &mut device))?);
        }
        Ok(times)
    }
}

/// Of kernels as they are run.
pub fn figures(folder: &Path) -> Result<Vec<Row>> {
    let times = Times::of(Form::Lanes, folder)?;
    Ok(vec![
        row("a kernel, text to first launch", &times.fresh, ", goal ≤ 60 ms"),
        row("of that, cached", &times.cached, ", goal ≤ 0.2 ms"),
        row("of that, cached, on a new device", &times.first, ""),
    ])
}

/// Where only threads are compiled.
pub fn threads(folder: &Path) -> Result<Vec<Row>> {
    let times = Times::of(Form::Threads, folder)?;
    Ok(vec![
        row("a kernel thread by thread, text to first launch", &times.fresh, ", goal ≤ 20 ms"),
        row("of that, cached", &times.cached, ", goal ≤ 0.2 ms"),
    ])
}

fn row(figure: &str, times: &[f64], goal: &str) -> Row {
    Row {
        figure: format!("{figure} (median of {}{goal})", times.len()),
        subject: format!("{:.2}ms", 1e3 * median(times)),
        baseline: String::new(),
        ratios: Vec::new(),
        target: None,
    }
}

/// Nothing of the module is left on the device afterwards.
fn first_launch(kernel: &Measured, text: &str, device: &mut (Context, [BufferId; 4])) -> Result<f64> {
    let (context, buffers) = device;
    let arguments = (kernel.arguments)(*buffers);
    let Measured { entry, block, shared_bytes, .. } = *kernel;
    let mut module = None;
    let took = seconds(|| {
        let loaded = context.load(text)?;
        context.launch(loaded, &Launch { entry, grid: [1; 3], block, shared_bytes, arguments: &arguments })?;
        context.finish_step()?;
        module = Some(loaded);
        Ok(())
    })?;
    module.into_iter().for_each(|module| context.unload(module));
    Ok(took)
}

/// Each kernel once, with a text that has no other entry.
fn alone() -> Result<Vec<(Measured, String)>> {
    let kernels = measured().into_iter().filter(|kernel| kernel.variant.is_empty());
    let alone = |kernel: Measured| {
        let text = std::fs::read_to_string(places::repository().join(kernel.file))?;
        let text = only(&text, kernel.entry)?;
        Ok((kernel, text))
    };
    kernels.map(alone).collect()
}

/// The text with no entry but this one.
fn only(text: &str, entry: &str) -> Result<String> {
    const ENTRY: &str = ".visible .entry ";
    let head = text.split(ENTRY).next().unwrap_or_default();
    let own = text.split(ENTRY).find(|part| part.starts_with(&format!("{entry}("))).context("no such entry")?;
    let (body, _) = own.split_once("\n}\n").context("an entry without an end")?;
    Ok(format!("{head}{ENTRY}{body}\n}}\n"))
}

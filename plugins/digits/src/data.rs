//! Reads the digits: gzipped lines of 64 pixels from 0 to 16 and a label from 0 to 9.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use flate2::read::GzDecoder;
use steadfast_guest::{Error, Result};

pub(crate) const PIXELS: usize = 64;
pub(crate) const CLASSES: usize = 10;
const BRIGHTEST: u8 = 16;

/// One image and what it shows.
pub(crate) struct Sample {
    /// From 0 to 1.
    pub(crate) pixels: [f32; PIXELS],
    pub(crate) label: usize,
}

/// Every fifth row is held out, the others are trained on.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) training: Vec<Sample>,
    pub(crate) held_out: Vec<Sample>,
}

impl Data {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let packed = fs::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::invalid(format!("there is no `{shown}`: give its folder with --input")),
            _ => Error::retryable(format!("cannot read `{shown}`: {error}")),
        })?;

        let mut data = Self::default();
        for (index, line) in BufReader::new(GzDecoder::new(packed.as_slice())).lines().enumerate() {
            let sample = line.map_err(|error| error.to_string()).and_then(|line| parse(&line));
            let sample = sample.map_err(|why| Error::invalid(format!("`{shown}`, line {}: {why}", index + 1)))?;
            if index % 5 == 4 { data.held_out.push(sample) } else { data.training.push(sample) }
        }
        if data.held_out.is_empty() {
            return Err(Error::invalid(format!("`{shown}` has fewer than 5 lines")));
        }
        Ok(data)
    }
}

fn parse(line: &str) -> Result<Sample, String> {
    let mut sample = Sample { pixels: [0.0; PIXELS], label: 0 };
    let fields: Vec<&str> = line.split(',').collect();
    let [pixels @ .., label] = fields.as_slice() else { return Err("nothing there".to_owned()) };
    if pixels.len() != PIXELS {
        return Err(format!("expected {PIXELS} pixels and a label, found {} fields", fields.len()));
    }
    for (at, (pixel, text)) in sample.pixels.iter_mut().zip(pixels).enumerate() {
        let value = text.trim().parse::<u8>().ok().filter(|value| *value <= BRIGHTEST);
        let value = value.ok_or_else(|| format!("pixel {}: expected 0 to {BRIGHTEST}, found `{text}`", at + 1))?;
        *pixel = f32::from(value) / f32::from(BRIGHTEST);
    }
    let digit = label.trim().parse::<usize>().ok().filter(|digit| *digit < CLASSES);
    sample.label = digit.ok_or_else(|| format!("label: expected 0 to {}, found `{label}`", CLASSES - 1))?;
    Ok(sample)
}

//! What a training leaves in `/output`.
//!
//! Weights are safetensors: 8 bytes with the length of a header, the header in JSON, then all numbers as they lie on the device. Those never pass through
//! the guest, which may be too small for them.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::{Map, Value, json};
use steadfast_guest::{Error, Result, output};

use super::config::Shape;
use super::layout::Layout;
use super::text::Table;
use super::transformer::Weights;

const LOSSES: &str = "loss.csv";
const VALIDATION: &str = "validation.csv";
const SAMPLES: &str = "samples";
const WEIGHTS: &str = "weights";
/// The weights in the end.
pub(crate) const MODEL: &str = "model.safetensors";

pub(crate) fn loss(step: u64, loss: f64, rate: f32, norm: f32) -> Result<()> {
    append(LOSSES, "step,loss,rate,norm", format_args!("{step},{loss:.6},{rate:.6e},{norm:.6}"))
}

pub(crate) fn validation(step: u64, loss: f64) -> Result<()> {
    append(VALIDATION, "step,loss", format_args!("{step},{loss:.6}"))
}

pub(crate) fn sample(step: u64, text: &str) -> Result<()> {
    fs::create_dir_all(output(SAMPLES))?;
    Ok(fs::write(output(SAMPLES).join(format!("{step:06}.txt")), text)?)
}

/// The name of the weights with which a step begins.
pub(crate) fn weights_of(step: u64) -> String {
    format!("{WEIGHTS}/{step:06}.safetensors")
}

/// Adds a line to a table, below this head.
fn append(file: &str, head: &str, line: impl Display) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(output(file))?;
    if file.metadata()?.len() == 0 {
        writeln!(file, "{head}")?;
    }
    Ok(writeln!(file, "{line}")?)
}

/// Writes the weights to a file in `/output`.
pub(crate) fn weights(name: &str, weights: &Weights, layout: &Layout, shape: Shape, table: &Table) -> Result<()> {
    let header = header(layout, shape, table).map_err(Error::invalid)?;
    if let Some(folder) = output(name).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(output(name), &header)?;
    Ok(weights.parameters.store(&format!("/output/{name}"), header.len() as u64)?)
}

/// All that stands before the numbers.
fn header(layout: &Layout, shape: Shape, table: &Table) -> serde_json::Result<Vec<u8>> {
    let mut entries: Map<String, Value> = Map::new();
    let about = [
        ("format", "pt".to_owned()),
        ("characters", table.characters()),
        ("layers", shape.layers.to_string()),
        ("heads", shape.heads.to_string()),
        ("width", shape.width.to_string()),
        ("context", shape.context.to_string()),
    ];
    let about: Map<String, Value> = about.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    entries.insert("__metadata__".to_owned(), about.into());
    for (name, part) in layout.named() {
        // Vectors are the parts behind the matrices.
        let shape = if part.first < layout.decayed { vec![part.rows, part.columns] } else { vec![part.columns] };
        let offsets = [part.first * 4, (part.first + part.len()) * 4];
        entries.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": offsets}));
    }
    let mut text = serde_json::to_vec(&entries)?;
    // Numbers begin at a multiple of 8.
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut header = (text.len() as u64).to_le_bytes().to_vec();
    header.append(&mut text);
    Ok(header)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use safetensors::{Dtype, SafeTensors};

    use super::*;

    #[test]
    fn weights_are_safetensors() {
        let shape = Shape { layers: 2, heads: 2, width: 8, context: 6 };
        let table = Table::of("a \"quoted\" line\nand ümläute").unwrap();
        let layout = Layout::of(shape, table.len());
        let mut file = header(&layout, shape, &table).unwrap();
        assert!(file.len().is_multiple_of(8));
        file.extend((0..layout.total).flat_map(|number| (number as f32).to_le_bytes()));

        let (_, about) = SafeTensors::read_metadata(&file).unwrap();
        assert_eq!(about.metadata().as_ref().unwrap()["characters"], table.characters());
        let tensors = SafeTensors::deserialize(&file).unwrap();
        assert_eq!(tensors.len(), 2 + 2 * 12 + 2);
        let query = tensors.tensor("h.1.attn.c_attn.weight").unwrap();
        assert_eq!((query.dtype(), query.shape()), (Dtype::F32, &[8, 24][..]));
        let first = layout.layers[1].attention.weight.first as f32;
        assert_eq!(query.data()[..4], first.to_le_bytes());
        assert_eq!(tensors.tensor("ln_f.bias").unwrap().shape(), [8]);
    }
}

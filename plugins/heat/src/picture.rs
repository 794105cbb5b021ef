//! Temperatures as a picture: black, red, yellow, white.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use steadfast_guest::{Error, Result};

/// Writes `width` × `height` temperatures from 0 to 1 as a PNG.
pub(crate) fn write(path: &Path, temperatures: &[f32], width: u32, height: u32) -> Result<()> {
    let failed = |error: png::EncodingError| Error::retryable(format!("cannot write `{}`: {error}", path.display()));
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    let pixels: Vec<u8> = temperatures.iter().flat_map(|temperature| colour(*temperature)).collect();
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)
}

/// A third of the scale for each of red, green and blue, one after the other.
fn colour(temperature: f32) -> [u8; 3] {
    [0.0, 1.0, 2.0].map(|before| ((temperature * 3.0 - before).clamp(0.0, 1.0) * 255.0).round() as u8)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn colours_go_from_black_to_white() {
        assert_eq!(colour(0.0), [0, 0, 0]);
        assert_eq!(colour(1.0 / 3.0), [255, 0, 0]);
        assert_eq!(colour(0.5), [255, 128, 0]);
        assert_eq!(colour(1.0), [255; 3]);
        assert_eq!(colour(-1.0), [0; 3]);
        assert_eq!(colour(f32::NAN), [0; 3]);
    }

    #[test]
    fn a_picture_can_be_read_back() {
        let path = std::env::temp_dir().join(format!("heat-{}.png", std::process::id()));
        write(&path, &[0.0, 1.0, 0.5, 0.0, 0.0, 1.0], 3, 2).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(File::open(&path).unwrap())).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((info.width, info.height, &pixels[..9]), (3, 2, &[0, 0, 0, 255, 255, 255, 255, 128, 0][..]));
    }
}

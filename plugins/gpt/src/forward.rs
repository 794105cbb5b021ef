//! From tokens to scores, and to the loss.

use steadfast_guest::Result;
use steadfast_guest::device::{Buffer, Gemm, Matrix};

use super::layout::{Dense, Norm};
use super::number::Number;
use super::text::Batch;
use super::transformer::{LayerRoom, NormRoom, Transformer, Weights, product};

/// How much of the room is in use: so many texts, each of so many tokens.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(super) texts: u32,
    pub(super) length: u32,
}

impl Extent {
    pub(super) fn rows(self) -> u32 {
        self.texts * self.length
    }
}

impl<T: Number> Transformer<T> {
    /// Leaves in `scores` what each token is followed by.
    pub(crate) fn forward(&self, weights: &Weights, batch: &Batch) -> Result<Extent> {
        let rows = batch.tokens.len() as u32;
        let extent = Extent { texts: rows / batch.length, length: batch.length };
        let width = self.shape.width;
        self.tokens.write(&batch.tokens)?;
        let first = self.layers.first().map_or(&self.last, |layer| &layer.stream);
        let embed = self.launch_places("embed", rows, width).arg(&self.tokens);
        let embed = embed.arg(weights.part(self.layout.tokens)).arg(weights.part(self.layout.positions)).arg(first);
        embed.arg(batch.length).arg(width).launch()?;
        for index in 0..self.layers.len() {
            self.layer(weights, index, extent)?;
        }
        self.normalize(weights, self.layout.norm, &self.last, &self.normal, rows)?;
        let scores = self.scores.matrix(rows, self.characters);
        product(self.normal.values.matrix(rows, width), self.matrix(self.layout.tokens).t(), scores)?;
        Ok(extent)
    }

    /// Leaves each row's loss in `losses`, and in `scores` the slopes of their mean.
    pub(crate) fn cross_entropy(&self, batch: &Batch, extent: Extent) -> Result<()> {
        self.targets.write(&batch.targets)?;
        let rows = extent.rows();
        let loss =
            self.launch_rows("cross_entropy", rows.into()).arg(&self.scores).arg(&self.targets).arg(&self.losses);
        Ok(loss.arg(rows).arg(self.characters).arg(self.lanes).launch()?)
    }

    fn layer(&self, weights: &Weights, index: usize, extent: Extent) -> Result<()> {
        let (parts, room) = (&self.layout.layers[index], &self.layers[index]);
        let (rows, width) = (extent.rows(), self.shape.width);
        let next = self.layers.get(index + 1).map_or(&self.last, |layer| &layer.stream);
        let change = self.change.matrix(rows, width);

        self.normalize(weights, parts.norm_1, &room.stream, &room.normal_1, rows)?;
        let queries = room.queries.matrix(rows, 3 * width);
        product(room.normal_1.values.matrix(rows, width), self.matrix(parts.attention.weight), queries)?;
        let bias = self.launch_places("add_bias", rows, 3 * width).arg(&room.queries);
        bias.arg(weights.part(parts.attention.bias)).arg(3 * width).launch()?;
        self.attend(room, extent)?;
        product(room.attended.matrix(rows, width), self.matrix(parts.attended.weight), change)?;
        self.add_to_stream(weights, parts.attended, &room.stream, &room.middle, rows)?;

        self.normalize(weights, parts.norm_2, &room.middle, &room.normal_2, rows)?;
        let hidden = room.hidden.matrix(rows, 4 * width);
        product(room.normal_2.values.matrix(rows, width), self.matrix(parts.hidden.weight), hidden)?;
        let gelu = self.launch_places("bias_gelu", rows, 4 * width).arg(&room.hidden);
        gelu.arg(weights.part(parts.hidden.bias)).arg(&room.active).arg(4 * width).launch()?;
        product(room.active.matrix(rows, 4 * width), self.matrix(parts.active.weight), change)?;
        self.add_to_stream(weights, parts.active, &room.middle, next, rows)
    }

    fn normalize(
        &self,
        weights: &Weights,
        norm: Norm,
        stream: &Buffer<f32>,
        room: &NormRoom<T>,
        rows: u32,
    ) -> Result<()> {
        let kernel = self.launch_rows("layernorm", rows.into()).arg(stream);
        let kernel = kernel.arg(weights.part(norm.scale)).arg(weights.part(norm.shift)).arg(&room.values);
        let kernel = kernel.arg(&room.means).arg(&room.reciprocals).arg(rows).arg(self.shape.width);
        Ok(kernel.arg(self.lanes).launch()?)
    }

    /// Adds the layer's `change`, and its bias.
    fn add_to_stream(
        &self,
        weights: &Weights,
        dense: Dense,
        stream: &Buffer<f32>,
        into: &Buffer<f32>,
        rows: u32,
    ) -> Result<()> {
        let width = self.shape.width;
        let add = self.launch_places("add_to_stream", rows, width).arg(stream).arg(&self.change);
        Ok(add.arg(weights.part(dense.bias)).arg(into).arg(width).launch()?)
    }

    /// A head at a time, for all texts at once: nothing has to be moved to where one head's numbers lie together.
    fn attend(&self, room: &LayerRoom<T>, extent: Extent) -> Result<()> {
        for head in 0..self.shape.heads {
            let [queries, keys, _] = self.head(&room.queries, head, extent);
            let probabilities = self.probabilities(&room.probabilities, head, extent);
            Gemm { a: queries, b: keys.t(), c: probabilities, alpha: self.attention_scale(), beta: 0.0 }
                .run_batch(extent.texts)?;
        }
        let rows = u64::from(extent.texts) * u64::from(self.shape.heads) * u64::from(extent.length);
        let softmax = self.launch_rows("causal_softmax", rows).arg(&room.probabilities);
        softmax.arg(rows).arg(extent.length).arg(self.lanes).launch()?;
        for head in 0..self.shape.heads {
            let [.., values] = self.head(&room.queries, head, extent);
            let (probabilities, attended) =
                (self.probabilities(&room.probabilities, head, extent), self.attended(&room.attended, head, extent));
            Gemm { a: probabilities, b: values, c: attended, alpha: 1.0, beta: 0.0 }.run_batch(extent.texts)?;
        }
        Ok(())
    }

    /// What scores of attention are multiplied with: otherwise they would grow with the width of a head.
    pub(super) fn attention_scale(&self) -> f64 {
        f64::from(self.head_width()).sqrt().recip()
    }

    fn head_width(&self) -> u32 {
        self.shape.width / self.shape.heads.max(1)
    }

    /// One head's queries, keys and values in the first text, or their slopes; those of the next lie behind its last row.
    pub(super) fn head<'a>(&self, queries: &'a Buffer<T>, head: u32, extent: Extent) -> [Matrix<'a, T>; 3] {
        [0, 1, 2].map(|kind| self.columns(queries, kind * self.shape.width, head, 3 * self.shape.width, extent))
    }

    /// What one head has attended to.
    pub(super) fn attended<'a>(&self, attended: &'a Buffer<T>, head: u32, extent: Extent) -> Matrix<'a, T> {
        self.columns(attended, 0, head, self.shape.width, extent)
    }

    fn columns<'a>(&self, of: &'a Buffer<T>, first: u32, head: u32, row: u32, extent: Extent) -> Matrix<'a, T> {
        let width = self.head_width();
        let matrix = of.at(u64::from(first + head * width)).matrix(extent.length, width);
        matrix.leading(row).stride(u64::from(extent.length) * u64::from(row))
    }

    /// One head's square of probabilities in the first text.
    pub(super) fn probabilities<'a>(&self, probabilities: &'a Buffer<T>, head: u32, extent: Extent) -> Matrix<'a, T> {
        let square = u64::from(extent.length).pow(2);
        let matrix = probabilities.at(u64::from(head) * square).matrix(extent.length, extent.length);
        matrix.stride(u64::from(self.shape.heads) * square)
    }
}

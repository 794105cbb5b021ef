//! Where each parameter lies in a buffer of them all, and what it is called: as in GPT-2's own files.
//!
//! Matrices come first and vectors after them, so that weight decay, which only matrices have, ends at one place.

use std::iter;

use super::config::Shape;

/// A matrix, or a vector as a matrix of one row. A dense layer's matrix has a row for each of its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

impl Part {
    pub(crate) fn len(self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }
}

/// `inputs × weight + bias`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dense {
    pub(crate) weight: Part,
    pub(crate) bias: Part,
}

/// A layernorm's scale and shift of every column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Norm {
    pub(crate) scale: Part,
    pub(crate) shift: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) norm_1: Norm,
    /// To queries, keys and values, one after the other.
    pub(crate) attention: Dense,
    pub(crate) attended: Dense,
    pub(crate) norm_2: Norm,
    pub(crate) hidden: Dense,
    pub(crate) active: Dense,
}

/// All parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// A row for each character. The scores at the end are products with these rows, too.
    pub(crate) tokens: Part,
    /// A row for each position of the context.
    pub(crate) positions: Part,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Norm,
    /// Where matrices end.
    pub(crate) decayed: u64,
    pub(crate) total: u64,
}

/// Gives out places, one after the other.
struct Places(u64);

impl Places {
    fn part(&mut self, rows: u32, columns: u32) -> Part {
        let part = Part { first: self.0, rows, columns };
        self.0 += part.len();
        part
    }

    fn norm(&mut self, width: u32) -> Norm {
        Norm { scale: self.part(1, width), shift: self.part(1, width) }
    }
}

impl Layout {
    pub(crate) fn of(shape: Shape, characters: u32) -> Self {
        let Shape { layers, width, context, .. } = shape;
        let matrices = Places(0).part(characters, width).len()
            + Places(0).part(context, width).len()
            + u64::from(layers) * 12 * u64::from(width) * u64::from(width);
        let (mut matrix, mut vector) = (Places(0), Places(matrices));
        let (tokens, positions) = (matrix.part(characters, width), matrix.part(context, width));
        let mut layer = |_| {
            let mut dense = |vector: &mut Places, inputs, outputs| Dense {
                weight: matrix.part(inputs, outputs),
                bias: vector.part(1, outputs),
            };
            Layer {
                norm_1: vector.norm(width),
                attention: dense(&mut vector, width, 3 * width),
                attended: dense(&mut vector, width, width),
                norm_2: vector.norm(width),
                hidden: dense(&mut vector, width, 4 * width),
                active: dense(&mut vector, 4 * width, width),
            }
        };
        let layers = (0..layers).map(&mut layer).collect();
        let norm = vector.norm(width);
        Self { tokens, positions, layers, norm, decayed: matrices, total: vector.0 }
    }

    /// Every layernorm.
    pub(crate) fn norms(&self) -> impl Iterator<Item = Norm> {
        self.layers.iter().flat_map(|layer| [layer.norm_1, layer.norm_2]).chain([self.norm])
    }

    /// All parts with their names, in no particular order.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, Part)> {
        let norm =
            |name: String, norm: Norm| [(format!("{name}.weight"), norm.scale), (format!("{name}.bias"), norm.shift)];
        let dense = |name: String, dense: Dense| {
            [(format!("{name}.weight"), dense.weight), (format!("{name}.bias"), dense.bias)]
        };
        let of_layer = move |(index, layer): (usize, &Layer)| {
            let name = |part: &str| format!("h.{index}.{part}");
            [
                norm(name("ln_1"), layer.norm_1),
                dense(name("attn.c_attn"), layer.attention),
                dense(name("attn.c_proj"), layer.attended),
                norm(name("ln_2"), layer.norm_2),
                dense(name("mlp.c_fc"), layer.hidden),
                dense(name("mlp.c_proj"), layer.active),
            ]
        };
        let tables = [("wte.weight".to_owned(), self.tokens), ("wpe.weight".to_owned(), self.positions)];
        let layers = self.layers.iter().enumerate().flat_map(of_layer).flatten();
        tables.into_iter().chain(layers).chain(iter::once(norm("ln_f".to_owned(), self.norm)).flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_side_by_side_and_matrices_first() {
        let shape = Shape { layers: 3, heads: 2, width: 8, context: 5 };
        let layout = Layout::of(shape, 11);
        let mut parts: Vec<_> = layout.named().collect();
        parts.sort_by_key(|(_, part)| part.first);
        let end = parts.iter().fold(0, |end, (name, part)| {
            assert_eq!(part.first, end, "{name}");
            assert_eq!(part.rows > 1, part.first < layout.decayed, "{name}");
            end + part.len()
        });
        assert_eq!(end, layout.total);
        assert_eq!(parts.len(), 2 + 3 * 12 + 2);
        assert_eq!(parts[2].0, "h.0.attn.c_attn.weight");
        assert_eq!((parts[2].1.rows, parts[2].1.columns), (8, 24));
    }

    #[test]
    fn gpt2_small_has_the_weights_that_it_is_known_for() {
        let shape = Shape { layers: 12, heads: 12, width: 768, context: 1024 };
        assert_eq!(Layout::of(shape, 50257).total, 124_439_808);
    }
}

//! The device's memory, by the element.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

use super::element::{self, Element};
use super::error::{self, Error, Result};
use crate::bindings::steadfast::job::device as wit;

/// How much passes between guest and host at once: both hold a copy of that much.
const PIECE_BYTES: usize = 1 << 20;

/// A piece of the device's memory that holds elements of one type. Dropping it frees the memory.
///
/// It is a handle, as a `File` is: operations need no `&mut`, and a kernel that is given one may write to it.
///
/// A **persistent** buffer is part of every checkpoint. As a field of a plugin's struct it is saved as its name, and comes back
/// open, with its content. A **scratch** buffer is lost with the attempt: give its field `#[serde(skip)]`, and make it in
/// [`Plugin::start`](crate::Plugin::start) and again in [`Plugin::resumed`](crate::Plugin::resumed). Until then it is closed, as
/// `Buffer::default()` is, and every use of it is an error.
#[derive(Debug, Default)]
pub struct Buffer<T: Element> {
    open: Option<Open>,
    element: PhantomData<T>,
}

#[derive(Debug)]
struct Open {
    handle: wit::Buffer,
    /// None for a scratch buffer.
    name: Option<String>,
    len: u64,
}

impl<T: Element> Buffer<T> {
    /// Makes a buffer of `len` zeros that no checkpoint keeps.
    pub fn scratch(len: u64) -> Result<Self> {
        error::needs_host("a scratch buffer")?;
        let handle = wit::Buffer::scratch(bytes_of::<T>(len))?;
        Ok(Self::opened(Open { handle, name: None, len }))
    }

    /// Opens the buffer of that name, which every checkpoint keeps: `len` zeros, or the content that it had in the checkpoint from which this
    /// attempt goes on, if it was in it ([`restored`](Self::restored)). A name can be open once at a time.
    pub fn persistent(name: &str, len: u64) -> Result<Self> {
        error::needs_host("a persistent buffer")?;
        let handle = wit::Buffer::persistent(name, T::KIND, bytes_of::<T>(len))?;
        Ok(Self::opened(Open { handle, name: Some(name.to_owned()), len }))
    }

    fn opened(open: Open) -> Self {
        Self { open: Some(open), element: PhantomData }
    }

    fn open(&self) -> Result<&Open> {
        self.open.as_ref().ok_or_else(|| {
            Error::invalid(
                "the buffer is closed: a field with #[serde(skip)] has to be opened in `start`, and again in `resumed`",
            )
        })
    }

    /// Whether it began with the content of a checkpoint, which initialisation would destroy.
    pub fn restored(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.handle.restored())
    }

    /// How many elements it holds; none if it is closed.
    pub fn len(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.len)
    }

    /// Whether it holds no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a persistent buffer.
    pub fn name(&self) -> Option<&str> {
        self.open.as_ref()?.name.as_deref()
    }

    /// A part of it, in elements: `weights.range(10..20)`.
    pub fn range(&self, range: impl RangeBounds<u64>) -> View<'_, T> {
        let first = match range.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len(),
        };
        View { buffer: self, first, len: end.saturating_sub(first) }
    }

    /// All from this element on.
    pub fn at(&self, first: u64) -> View<'_, T> {
        self.range(first..)
    }

    /// Writes to its beginning.
    pub fn write(&self, elements: &[T]) -> Result<()> {
        self.range(..).write(elements)
    }

    /// Reads all of it. Waits for all operations before it.
    pub fn read(&self) -> Result<Vec<T>> {
        self.range(..).read()
    }

    /// Reads as much from its beginning as there is room for. Waits for all operations before it.
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.range(..).read_into(elements)
    }

    /// Makes all elements this one.
    pub fn fill(&self, element: T) -> Result<()> {
        self.range(..).fill(element)
    }

    /// Copies a buffer, or a part of one, to its beginning.
    pub fn copy_from<'s>(&self, source: impl Into<View<'s, T>>) -> Result<()> {
        self.range(..).copy_from(source)
    }

    /// Fills all of it from a file: see [`View::load`].
    pub fn load(&self, path: &str, file_offset: u64) -> Result<()> {
        self.range(..).load(path, file_offset)
    }

    /// Writes all of it to a file: see [`View::store`].
    pub fn store(&self, path: &str, file_offset: u64) -> Result<()> {
        self.range(..).store(path, file_offset)
    }
}

impl Buffer<f32> {
    /// Fills all of it: see [`View::fill_uniform`].
    pub fn fill_uniform(&self, seed: u64, position: u64) -> Result<()> {
        self.range(..).fill_uniform(seed, position)
    }

    /// Fills all of it: see [`View::fill_normal`].
    pub fn fill_normal(&self, seed: u64, position: u64) -> Result<()> {
        self.range(..).fill_normal(seed, position)
    }
}

/// A part of a [`Buffer`], in elements. Whether it lies within the buffer is said by whatever it is used for.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T: Element> {
    buffer: &'a Buffer<T>,
    first: u64,
    len: u64,
}

impl<'a, T: Element> View<'a, T> {
    /// How many elements it spans.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it spans no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes to its beginning.
    pub fn write(&self, elements: &[T]) -> Result<()> {
        let handle = self.holding("write", elements.len() as u64)?;
        let mut offset = self.offset();
        for piece in elements.chunks(PIECE_BYTES / size_of::<T>()) {
            handle.write(offset, &element::to_bytes(piece))?;
            offset += size_of_val(piece) as u64;
        }
        Ok(())
    }

    /// Reads all of it. Waits for all operations before it.
    pub fn read(&self) -> Result<Vec<T>> {
        self.holding("read", self.len)?;
        let too_many = |_| {
            let len = self.len;
            Error::invalid(format!(
                "read: {len} elements are more than the guest has memory for; read a range at a time"
            ))
        };
        let mut elements = Vec::new();
        elements.try_reserve_exact(usize::try_from(self.len).unwrap_or(usize::MAX)).map_err(too_many)?;
        elements.resize(elements.capacity().min(self.len as usize), T::default());
        self.read_into(&mut elements)?;
        Ok(elements)
    }

    /// Reads as much from its beginning as there is room for. Waits for all operations before it.
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        let handle = self.holding("read", elements.len() as u64)?;
        let mut offset = self.offset();
        for piece in elements.chunks_mut(PIECE_BYTES / size_of::<T>()) {
            let bytes = handle.read(offset, size_of_val(piece) as u64)?;
            element::from_bytes(&bytes, piece);
            offset += bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes all its elements this one.
    pub fn fill(&self, element: T) -> Result<()> {
        let handle = self.holding("fill", self.len)?;
        Ok(handle.fill(self.offset(), self.bytes(), element.to_bytes().as_ref())?)
    }

    /// Copies a buffer, or a part of one, to its beginning. The two may overlap.
    pub fn copy_from<'s>(&self, source: impl Into<View<'s, T>>) -> Result<()> {
        let source = source.into();
        let (handle, from) = (self.holding("copy to", source.len)?, source.holding("copy from", source.len)?);
        Ok(handle.copy_from(self.offset(), from, source.offset(), source.bytes())?)
    }

    /// Fills it from a file below `/input` or `/output`, whose bytes from `file_offset` on are elements, little-endian. They don't pass
    /// through the guest, which may be too small for them.
    pub fn load(&self, path: &str, file_offset: u64) -> Result<()> {
        Ok(self.holding("load", self.len)?.load(self.offset(), self.bytes(), path, file_offset)?)
    }

    /// Writes it to a file below `/output`, from `file_offset` on. The file is made if it is not there; other bytes in it stay.
    pub fn store(&self, path: &str, file_offset: u64) -> Result<()> {
        Ok(self.holding("store", self.len)?.store(self.offset(), self.bytes(), path, file_offset)?)
    }

    /// The buffer's handle, if so many elements from the view's beginning on lie in both.
    fn holding(&self, call: &str, len: u64) -> Result<&'a wit::Buffer> {
        let open = self.buffer.open().map_err(|error| error.within(call))?;
        let room = open.len.saturating_sub(self.first).min(self.len);
        // An empty range may lie at the buffer's end, and not beyond.
        if len <= room && self.first <= open.len {
            return Ok(&open.handle);
        }
        let name = open.name.as_ref().map_or("the scratch buffer".to_owned(), |name| format!("the buffer `{name}`"));
        let (first, all) = (self.first, open.len);
        let what = match len > self.len {
            true => format!("{len} elements do not fit into a range of {} in {name}", self.len),
            false => format!("elements {first} to {} of {name}, which has {all}", first.saturating_add(len)),
        };
        Err(Error::invalid(what).within(call))
    }

    fn offset(&self) -> u64 {
        bytes_of::<T>(self.first)
    }

    fn bytes(&self) -> u64 {
        bytes_of::<T>(self.len)
    }

    /// The buffer, and where the view begins in bytes.
    pub(super) fn place(&self) -> Result<(&'a wit::Buffer, u64)> {
        Ok((self.holding("a range", 0)?, self.offset()))
    }
}

impl View<'_, f32> {
    /// Fills it with numbers evenly between 0 (never reached) and 1 (which is).
    ///
    /// They are those from `position` on of an endless row that the seed alone decides, so a generator's state is a seed and a
    /// position: add the number of elements to it, and the next fill goes on where this one ended.
    pub fn fill_uniform(&self, seed: u64, position: u64) -> Result<()> {
        self.fill_random(wit::Distribution::Uniform, seed, position)
    }

    /// Fills it with normal numbers, of mean 0 and variance 1. Seed and position as in [`fill_uniform`](Self::fill_uniform).
    pub fn fill_normal(&self, seed: u64, position: u64) -> Result<()> {
        self.fill_random(wit::Distribution::Normal, seed, position)
    }

    fn fill_random(&self, distribution: wit::Distribution, seed: u64, position: u64) -> Result<()> {
        Ok(self.holding("fill", self.len)?.fill_random(self.offset(), self.len, distribution, seed, position)?)
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.range(..)
    }
}

/// Sizes that leave the range are larger than any device, which says so.
fn bytes_of<T: Element>(elements: u64) -> u64 {
    elements.saturating_mul(T::BYTES)
}

/// A persistent buffer as part of the state.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Buffer")]
struct Saved<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    len: u64,
}

impl<T: Element> Serialize for Buffer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let refuse = |why: &str| error::in_state(Error::invalid(why), |error| S::Error::custom(error));
        match &self.open {
            Some(Open { name: Some(name), len, .. }) => Saved { name: name.into(), len: *len }.serialize(serializer),
            Some(_) => Err(refuse(
                "a scratch buffer is no part of the state: give its field #[serde(skip)] and make it again in `resumed`, or make it persistent",
            )),
            None => Err(refuse("a closed buffer is no part of the state: open it in `start`")),
        }
    }
}

impl<'de, T: Element> Deserialize<'de> for Buffer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let Saved { name, len } = Saved::deserialize(deserializer)?;
        let opened = Self::persistent(&name, len).and_then(|buffer| match buffer.restored() {
            true => Ok(buffer),
            false => Err(Error::invalid(format!("the state names the buffer `{name}`, and the checkpoint has none"))),
        });
        opened.map_err(|error| error::in_state(error, |error| D::Error::custom(error)))
    }
}

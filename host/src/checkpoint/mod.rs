//! Checkpoints: their format, the volume they live on, and which of them counts.

//! What the real `libtt_metal.so` does, and what it writes to `/dev/shm/tt_device_<id>_memory`, byte by byte.
//!
//! Runs when `TTMON_TTNN` names the `ttnn` folder of an unpacked wheel, as `scripts/fetch-ttnn` prints it, and
//! `TTMON_TTNN_OLD` that of 0.78.0, the last one with another layout of buffers.

#![allow(clippy::unwrap_used)]

mod buffers;
mod cluster;
mod ends;
mod harness;
mod meshes;
mod region;
mod shm;
mod wheel;

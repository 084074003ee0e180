//! `libttmon_agent.so`: keeps the [book](ledger::book) of an unmodified tt-metal process from inside.
//!
//! Loaded by `LD_PRELOAD`, or with `RTLD_GLOBAL` before `libtt_metal.so`, it intercepts a few of that library's
//! exported functions, notes what they report, and passes every call on. It prints nothing, starts no thread without
//! `TTMON_AGENT=reads`, and makes the book only when there is something to enter. What it does not recognise it passes on and remarks once in the book.
//!
//! Other runtimes report their buffers, and any program queries the machine, through the functions of [`c_abi`].
//!
//! | environment | |
//! |---|---|
//! | `TTMON_AGENT=off` (`0`, `no`, `false`) | pass on only |
//! | `TTMON_AGENT=reads` | also read counters from an open device, twice a second: `dispatch_telemetry` |
//! | `TTMON_ROOT=<folder>` | queries read the machine whose files lie there |
//! | `TTMON_BOOK_SOCKET=<path>` | hand the book over to whoever listens there, too; `@` begins an abstract name |
//! | | services are found without it: `/run/ttmon/ttmon.sock`, `$XDG_RUNTIME_DIR/ttmon.sock` |

// The other side is C++: its functions are found by mangled name and called through pointers, which the compiler cannot
// check. Each use says why it is sound.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod activity;
mod banks;
mod book;
mod buffer;
pub mod c_abi;
mod circular;
mod clock;
mod decode;
mod device;
mod dispatch_telemetry;
mod due;
mod events;
mod exit;
mod handover;
mod hooks;
mod intercept;
pub mod label;
mod library;
mod metal;
mod query;
mod switch;
mod tracking;
mod unordered_map;

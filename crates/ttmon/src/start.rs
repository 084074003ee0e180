//! The entry of the program, in place of Rust's own.
//!
//! That one reads `/proc/self/maps` and sets up handlers that print a line when a stack overflows: a tenth of the time that
//! `ttmon --version` takes. What else it does is done here: standard files that are closed are opened, a pipe that nobody reads is an
//! error and no signal, and a panic ends the program with code 101.

#![allow(unsafe_code)]

use std::panic::catch_unwind;

/// What Rust ends a program with whose main thread panics.
const PANICKED: u8 = 101;

/// Called by the C library.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    open_standard_files();
    // SAFETY: there is one thread, and nothing has asked for this signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // Writes what is still to be written to the standard output.
    std::process::exit(catch_unwind(crate::program).unwrap_or(PANICKED).into())
}

/// A file that is opened later must not become the standard output by its number. Where that is closed, what is printed is lost, which
/// must be an error: Rust takes a closed one for one that takes everything.
fn open_standard_files() {
    for number in 0..3 {
        // SAFETY: plain calls. A file that is opened gets the lowest number that is free: this one.
        unsafe {
            if libc::fcntl(number, libc::F_GETFD) == -1 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                let full = if number == 1 { libc::open(c"/dev/full".as_ptr(), libc::O_RDWR) } else { -1 };
                if full != -1 {
                    libc::dup2(full, number);
                    libc::close(full);
                }
            }
        }
    }
}

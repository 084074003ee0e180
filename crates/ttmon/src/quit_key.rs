//! The key `q`, which ends a live view as Ctrl-C does.

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};
use std::io::{self, Read};
use std::sync::Once;

/// A terminal that passes keys on at once, without showing them. Dropping this gives it back as it was.
pub struct QuitKey {
    before: Termios,
}

static READER: Once = Once::new();

impl QuitKey {
    /// Nothing where standard input is no terminal, or where somebody else has it: a job in the background must not ask.
    pub fn listen() -> Option<QuitKey> {
        let stdin = io::stdin();
        if !isatty(&stdin) || tcgetpgrp(&stdin).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        READER.call_once(|| drop(std::thread::spawn(wait_for_q)));
        Some(QuitKey { before })
    }
}

impl Drop for QuitKey {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn wait_for_q() {
    let mut key = [0];
    while io::stdin().read(&mut key).is_ok_and(|n| n == 1) {
        if matches!(key[0], b'q' | b'Q') {
            // The way out is the one that Ctrl-C takes.
            let _ = kill_process(getpid(), Signal::INT);
        }
    }
}

//! The command: started in the foreground, sent the signals that were meant for it, and waited for.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use watch::wait::on;

/// The signals that no longer end this program, but wait here to be passed on.
pub struct Signals(Vec<(Signal, UnixStream)>);

impl Signals {
    /// Takes them over, but for those that are ignored, as by `nohup`: the command shall ignore them, too.
    pub fn take() -> io::Result<Signals> {
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let mut pipes = Vec::new();
        for signal in [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2] {
            if ignored & (1 << (signal.as_raw() - 1)) == 0 {
                let pipe = on(&[signal.as_raw()])?;
                pipe.set_nonblocking(true)?;
                pipes.push((signal, pipe));
            }
        }
        Ok(Signals(pipes))
    }
}

/// Waits for the command to end, and passes on to it what comes meanwhile.
pub fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    // Linux before 5.3 has none: there the signals are kept from us, but not passed on.
    let Ok(end) = pidfd_open(pid, PidfdFlags::empty()) else { return child.wait() };
    loop {
        let mut sources = vec![PollFd::new(&end, PollFlags::IN)];
        sources.extend(signals.0.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        for ((signal, pipe), _) in signals.0.iter().zip(&came[1..]).filter(|(_, came)| **came) {
            // However many came since the last time, they count as one.
            let mut pipe = pipe;
            while matches!(pipe.read(&mut [0; 64]), Ok(1..)) {}
            if !(matches!(*signal, Signal::INT | Signal::QUIT) && is_in_foreground()) {
                // It may have ended just now.
                let _ = pidfd_send_signal(&end, *signal);
            }
        }
        if came[0] {
            return child.wait();
        }
    }
}

/// Whether keys on the terminal reach this process group, and so the command by themselves.
fn is_in_foreground() -> bool {
    let terminal = rustix::fs::open("/dev/tty", OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    let group = terminal.and_then(rustix::termios::tcgetpgrp);
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The signals that a process ignores, by its status file.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Starts the command. If that is impossible: the exit code that shells have for the case, and the reason.
pub fn start(command: &mut Command) -> Result<Child, (u8, String)> {
    command.spawn().map_err(|error| {
        let program = Path::new(command.get_program());
        let has_slash = program.as_os_str().as_encoded_bytes().contains(&b'/');
        let (code, why) = match error.kind() {
            io::ErrorKind::NotFound if has_slash && program.exists() => {
                (127, "the interpreter that its first line names was not found".into())
            }
            io::ErrorKind::NotFound if has_slash => (127, "there is no such file".into()),
            io::ErrorKind::NotFound => (127, "no folder of PATH has such a program".into()),
            io::ErrorKind::PermissionDenied => {
                (126, "it may not be executed (is it a program, and is its x bit set?)".into())
            }
            _ => (126, error.to_string()),
        };
        (code, format!("cannot run {}: {why}", program.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status_file() {
        let status = "Name:\tttmon\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status), 1 << (Signal::HUP.as_raw() - 1) | 1 << (Signal::PIPE.as_raw() - 1));
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn what_cannot_be_started_has_the_codes_of_a_shell() {
        let code = |program: &str| start(&mut Command::new(program)).unwrap_err().0;
        assert_eq!([code("no-such-program-anywhere"), code("/no/such/file"), code("/")], [127, 127, 126]);
    }
}

//! A forked child, which has a copy of the device and its buffers.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process;

use anyhow::{Context, Result, bail};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, getppid, kill_process, set_parent_process_death_signal, waitpid};

use super::MockMesh;

mod libc {
    unsafe extern "C" {
        pub fn fork() -> i32;
        pub safe fn pause() -> i32;
        pub safe fn _exit(code: i32) -> !;
    }
}

/// Ends the process without destructors, of Rust or of C++.
pub use libc::_exit as exit_at_once;

/// A child that sleeps. It is ended when dropped.
pub struct SleepingChild(Pid);

impl Drop for SleepingChild {
    fn drop(&mut self) {
        // A test may have killed it already; then it is a zombie until now.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// Replies when the child is about to sleep. It sleeps until this process is gone.
pub fn fork(mesh: &mut MockMesh, command: &[&str]) -> Result<String> {
    if !matches!(command, [] | ["alloc" | "tensor", ..]) {
        bail!("a child can only alloc");
    }
    let (mut reader, writer) = pipe()?;
    let parent = process::id();
    // SAFETY: The child does what any program may do that forks by accident: it goes on with what it has.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).context("cannot fork"),
        0 => sleep_as_child(mesh, command, writer, parent),
        child => {
            mesh.children.extend(Pid::from_raw(child).map(SleepingChild));
            drop(writer);
            let mut reply = String::new();
            reader.read_to_string(&mut reply)?;
            match reply.split_once(' ').unwrap_or((&reply, "")) {
                ("OK", "") => Ok(format!("child={child}")),
                ("OK", values) => Ok(format!("child={child} {values}")),
                ("ERR", reason) => bail!("{reason}"),
                _ => bail!("the child {child} ended"),
            }
        }
    }
}

/// A child that does something and ends at once, as the workers of Python's `multiprocessing` do. Replies when it has ended.
pub fn work(mesh: &mut MockMesh, command: &[&str]) -> Result<String> {
    let (mut reader, mut writer) = pipe()?;
    // SAFETY: as above.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).context("cannot fork"),
        0 => {
            let reply = mesh.answer(command).unwrap_or_else(|error| format!("failed: {error:#}"));
            let written = writer.write_all(reply.as_bytes());
            libc::_exit(if written.is_ok() && !reply.starts_with("failed") { 0 } else { 1 });
        }
        child => {
            drop(writer);
            let mut reply = String::new();
            reader.read_to_string(&mut reply)?;
            let ended = Pid::from_raw(child).map(|child| waitpid(Some(child), WaitOptions::empty()));
            match ended {
                Some(Ok(Some((_, status)))) if status.exit_status() == Some(0) => Ok(format!("child={child} {reply}")),
                _ => bail!("the worker {child} {reply}"),
            }
        }
    }
}

fn sleep_as_child(mesh: &mut MockMesh, command: &[&str], mut writer: impl Write, parent: u32) -> ! {
    let orphaned = || getppid().map(|pid| pid.as_raw_nonzero().get() as u32) != Some(parent);
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || orphaned() {
        exit_at_once(1);
    }
    let reply = match if command.is_empty() { Ok(String::new()) } else { mesh.answer(command) } {
        Ok(values) => format!("OK {values}"),
        Err(error) => format!("ERR {error:#}"),
    };
    let written = writer.write_all(reply.as_bytes());
    drop(writer);
    if written.is_err() || reply.starts_with("ERR") {
        exit_at_once(1);
    }
    loop {
        libc::pause();
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((reader.into(), writer.into()))
}

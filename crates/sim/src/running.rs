//! A machine that moves by itself.

use crate::past::{self, PastMoment};
use crate::{Inject, SimMachine};
use model::Snapshot;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A machine that follows real time in steps of 100 ms. Dropped, it stops and is gone, processes and folder.
pub struct Running {
    root: PathBuf,
    inject: Inject,
    past: Vec<PastMoment>,
    failure: Arc<OnceLock<String>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SimMachine {
    /// Lets the machine move with real time, until the answer is dropped.
    pub fn run(mut self) -> Running {
        let (root, inject, past) = (self.root().to_owned(), self.inject(), self.take_past());
        let (stop, stopped) = mpsc::channel();
        let (began, before) = (Instant::now(), self.elapsed());
        let failure = Arc::new(OnceLock::new());
        let failed = failure.clone();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                let behind = (before + began.elapsed()).saturating_sub(self.elapsed());
                // Without its folder or space to write it stops, and reports that.
                if let Err(error) = self.advance(behind) {
                    failed.get_or_init(|| error.to_string());
                }
            }
        });
        Running { root, inject, past, failure, stop: Some(stop), thread: Some(thread) }
    }
}

impl Running {
    /// The folder to take for `/`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// As [`SimMachine::past`].
    pub fn past(&self, first: &Snapshot) -> Vec<Snapshot> {
        past::snapshots(&self.past, first)
    }

    /// Why it moves no more, if it does not.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// What to ask before each read of a file.
    pub fn inject(&self) -> Inject {
        self.inject.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop = None;
        // If the thread panicked, the machine was dropped all the same.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

const STEP: Duration = Duration::from_millis(100);

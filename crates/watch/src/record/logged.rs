//! A recording with its log: what is new with each snapshot is found and written beside it.

use super::writer::Recorder;
use crate::news::NewsFinder;
use model::{ExitRecord, Snapshot};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Somebody who writes a recording, and finds out what its log has to say.
pub struct LoggedRecorder {
    recorder: Recorder,
    /// Absent before the first snapshot.
    news: Option<NewsFinder>,
}

impl LoggedRecorder {
    /// Begins a recording. A file that holds anything is left alone.
    pub fn create(path: &Path) -> anyhow::Result<LoggedRecorder> {
        Ok(LoggedRecorder { recorder: Recorder::create(path)?, news: None })
    }

    /// Adds a snapshot, and what is new with it. `latest` are the latest exits that are known, new or not.
    pub fn push(&mut self, snapshot: &Snapshot, latest: Vec<ExitRecord>) -> io::Result<()> {
        self.recorder.push(snapshot)?;
        let now = Arc::new(snapshot.clone());
        let news = match &mut self.news {
            Some(finder) => finder.find_among(now, latest),
            None => {
                let (finder, news) = NewsFinder::new(now);
                self.news = Some(finder);
                news
            }
        };
        news.entries().iter().try_for_each(|entry| self.recorder.log(entry))
    }

    /// Writes what is left, and the index.
    pub fn finish(self) -> io::Result<()> {
        self.recorder.finish()
    }
}

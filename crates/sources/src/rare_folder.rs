//! A folder of a device that only some drivers have.

use crate::dir::Dir;
use std::time::{Duration, Instant};

/// After this time a folder that was missing is looked for again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// A folder that is looked for when its device is first read, and again after a minute.
#[derive(Default)]
pub(crate) struct RareFolder {
    folder: Option<Dir>,
    looked: Option<Instant>,
}

impl RareFolder {
    /// The folder, where there is one.
    pub fn get(&mut self, class: &Dir, name: &str) -> Option<&Dir> {
        if self.folder.is_none() && self.looked.is_none_or(|when| when.elapsed() >= RETRY_AFTER) {
            self.looked = Some(Instant::now());
            self.folder = class.open_dir(name).ok();
        }
        self.folder.as_ref()
    }
}

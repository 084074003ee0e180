//! Why a deep read did not work.

use model::DeepUnavailable;
use rustix::io::Errno;

/// What went wrong, in a form that needs no memory: the reader allocates none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The reason that users see.
    pub why: DeepUnavailable,
    /// What was tried, or what was found.
    pub what: &'static str,
    /// The system's error number, or 0.
    pub errno: i32,
    /// The word that was found, or 0.
    pub word: u32,
}

impl Problem {
    /// Something that was found in the chip's memory.
    pub const fn found(why: DeepUnavailable, what: &'static str, word: u32) -> Problem {
        Problem { why, what, errno: 0, word }
    }

    /// A node that could not be opened.
    pub fn open(error: Errno) -> Problem {
        match Problem::call("open", error) {
            problem if error == Errno::AGAIN => Problem { why: DeepUnavailable::Exclusive, ..problem },
            problem => problem,
        }
    }

    /// A call that failed.
    pub fn call(what: &'static str, error: Errno) -> Problem {
        let why = match error {
            Errno::ACCESS | Errno::PERM => DeepUnavailable::NotPermitted,
            Errno::NOTTY | Errno::INVAL => DeepUnavailable::TooOld,
            _ => DeepUnavailable::NotReady,
        };
        Problem { why, what, errno: error.raw_os_error(), word: 0 }
    }
}

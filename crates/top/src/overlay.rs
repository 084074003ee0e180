//! What windows and views remember of themselves: where a cursor is, what was typed, what is chosen.

use super::cursor::Cursor;
use super::settings::TopSettings;
use model::figure::Field;
use model::figure::device::ASIC_TEMP;
use model::filter::FilterError;
use model::{Device, OperationList, Timestamp};

/// The window that lies over the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    Help(HelpWindow),
    Setup(Setup),
    Sort { at: usize },
    Signals(SignalMenu),
    Filter(FilterPrompt),
    Detail(Detail),
    Device { scroll: usize },
}

/// How far help is scrolled, and what is searched for in it.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct HelpWindow {
    pub scroll: usize,
    pub search: Option<String>,
}

/// The process, and how far its description is scrolled.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub pid: u32,
    pub scroll: usize,
}

/// Whose operations tt-metal's Inspector was asked for, when, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    pub pid: u32,
    pub asked_at: Timestamp,
    pub answer: InspectorAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum InspectorAnswer {
    Pending,
    Known(OperationList),
    /// Why there is none, in a sentence.
    Refused(String),
}

/// What a filter is for. Only one for processes has mistakes, and earlier ones to come back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterSubject {
    Processes,
    Machines,
    Events,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FilterPrompt {
    pub subject: FilterSubject,
    pub text: Vec<char>,
    pub cursor: usize,
    pub wrong: Option<FilterError>,
    /// The filter and the selected process before.
    pub former: (String, Option<u32>),
    /// Which of the earlier filters is shown, and what was typed before that.
    pub recalled: Option<(usize, Vec<char>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// As it was, to go back to.
    pub before: TopSettings,
    pub at: usize,
    /// The word that the cursor is on, where a choice is a list.
    pub word: usize,
}

/// Where the cursor is, and whom the signal is for.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalMenu {
    pub to: Vec<SignalTarget>,
    pub signal: i32,
    pub typed: String,
    /// The signal is chosen; whether to send it is asked.
    pub is_asking: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SignalTarget {
    pub pid: u32,
    pub started_at: Option<Timestamp>,
    pub name: String,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct EventsChosen {
    /// The event under the cursor: 0 is the newest.
    pub at: usize,
    /// Whether all of it is shown.
    pub is_open: bool,
    /// Words that an event must have.
    pub filter: String,
    /// Later ones were not seen yet.
    pub read_until: Timestamp,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct MemoryChosen {
    pub tab: MemoryTab,
    pub pid: Option<u32>,
    pub kind: Option<&'static str>,
    pub cursor: Cursor<MemoryKey>,
    pub closer: Option<MemoryKey>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum MemoryTab {
    #[default]
    Processes,
    Buffers,
    /// A bank, as blocks that are used or free.
    Map,
    Deaths,
    Left,
}

impl MemoryTab {
    pub const ALL: [MemoryTab; 5] =
        [MemoryTab::Processes, MemoryTab::Buffers, MemoryTab::Map, MemoryTab::Deaths, MemoryTab::Left];
}

#[derive(Debug, Clone, PartialEq)]
pub enum MemoryKey {
    Process(u32),
    Buffer {
        pid: Option<u32>,
        kind: String,
        address: u64,
        devices: Vec<String>,
    },
    Death(u32, Timestamp),
    Chip(String),
    /// Its address, where it has one.
    Block(Option<u64>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeshChosen {
    pub metric: Field<Device>,
}

impl Default for MeshChosen {
    fn default() -> MeshChosen {
        MeshChosen { metric: ASIC_TEMP.field() }
    }
}

/// What is chosen in the charts. Which figures, and how they are drawn, are settings.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Charts {
    /// How much time is shown, in seconds. None is as much as there are columns for, a sample each.
    pub span: Option<f64>,
    /// Where it ends; the present when absent.
    pub end: Option<Timestamp>,
    pub cursor: Option<Timestamp>,
    /// The first of the figures that is shown.
    pub first: usize,
    /// What the mouse holds.
    pub held: Option<PressedMoment>,
}

/// A moment that was pressed upon and not let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressedMoment {
    pub moment: Timestamp,
    /// Whether it was dragged: then it was no click.
    pub dragged: bool,
}

//! The keys. Help, the last line of each view and what is done all come from these tables.

use super::state::TopView;
use crossterm::event::{KeyCode, KeyModifiers};

pub type KeyPress = (KeyCode, KeyModifiers);

/// Keys, what they do, and what help says of them.
pub struct Binding {
    pub keys: &'static [KeyPress],
    pub action: Action,
    /// How help and the last line call the keys.
    pub shown: &'static str,
    pub help: &'static str,
    /// What it belongs to, as help says.
    pub group: &'static str,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CONTROL: KeyModifiers = KeyModifiers::CONTROL;

const fn key(c: char) -> KeyPress {
    (KeyCode::Char(c), NONE)
}

const fn f(n: u8) -> KeyPress {
    (KeyCode::F(n), NONE)
}

const fn code(code: KeyCode) -> KeyPress {
    (code, NONE)
}

macro_rules! bindings {
    ($($group:literal { $($action:ident $shown:literal [$($key:expr),+] $help:literal;)+ })+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($($action),+),+
        }

        /// All keys, in the order of help.
        pub const BINDINGS: &[Binding] = &[$($(Binding {
            keys: &[$($key),+],
            action: Action::$action,
            shown: $shown,
            help: $help,
            group: $group,
        }),+),+];
    };
}

bindings! {
    "General" {
        Help "?" [key('?'), f(1)] "this help";
        Quit "q, F10" [key('q'), f(10), (KeyCode::Char('c'), CONTROL)] "quit";
        Back "Esc" [code(KeyCode::Esc)] "close, clear the filter, or back to the overview";
        Pause "p" [key('p')] "pause the display; sampling continues";
        Faster ">" [key('>')] "sample more often; replay faster";
        Slower "<" [key('<')] "sample less often; replay slower";
        Setup "F2" [f(2), key('S')] "settings";
        Save "F12" [f(12), key('W')] "save the settings";
        Redraw "F5, Ctrl-L" [f(5), (KeyCode::Char('l'), CONTROL)] "redraw";
        Suspend "Ctrl-Z" [(KeyCode::Char('z'), CONTROL)] "suspend; fg resumes";
    }
    "Views" {
        Overview "1" [key('1')] "overview: devices, charts, processes";
        Memory "2" [key('2')] "memory: who holds it, down to single buffers";
        Mesh "3" [key('3')] "mesh: chips at their places";
        Events "4" [key('4')] "events: state changes, exits, faults, limits";
        Fleet "F" [key('F')] "all machines, when several are watched";
        NextView "v" [key('v')] "the next view";
    }
    "Move and select" {
        Up "Up, k" [code(KeyCode::Up), key('k')] "up";
        Down "Down, j" [code(KeyCode::Down), key('j')] "down";
        Left "Left, h" [code(KeyCode::Left), key('h')] "scroll the command line; move the cursor; memory: next list";
        Right "Right, l" [code(KeyCode::Right), key('l')] "scroll the command line; move the cursor; memory: next list";
        PageUp "PgUp" [code(KeyCode::PageUp), (KeyCode::Char('u'), CONTROL)] "a page up";
        PageDown "PgDn" [code(KeyCode::PageDown), (KeyCode::Char('d'), CONTROL)] "a page down";
        Home "Home, g" [code(KeyCode::Home), key('g')] "to the first";
        End "End, G" [code(KeyCode::End), key('G')] "to the last";
        Enter "Enter" [code(KeyCode::Enter)] "details of the selected process, machine, buffer, chip or event";
        Device "d" [key('d')] "everything about the selected device";
        BankMap "b" [key('b')] "memory: a bank as a map of used and free blocks";
        NextDevice "Tab, n" [code(KeyCode::Tab), key('n')] "select the next device";
        PreviousDevice "Shift-Tab, N" [code(KeyCode::BackTab), key('N')] "select the previous device";
    }
    "Processes" {
        Filter "/" [key('/'), f(4)] "show only what matches, as in: user:me dram>1G name~vllm";
        SortMenu "F6" [f(6), key('s')] "choose the column to sort by";
        Ascending "+" [key('+')] "sort the smallest first";
        Descending "-" [key('-')] "sort the largest first";
        Tree "t" [key('t')] "processes as a tree";
        Tag "Space" [key(' ')] "tag a process";
        UntagAll "U" [key('U')] "untag all";
        Signal "F9" [f(9), key('K')] "send a signal to the tagged processes, or to the selected one";
        Inspect "i" [key('i')] "details of a process: ask tt-metal's Inspector for its operations";
    }
    "Charts" {
        ZoomIn "z" [key('z')] "a shorter time";
        ZoomOut "Z, x" [key('Z'), key('x')] "a longer time";
        Older "," [key(',')] "back in time";
        Newer "." [key('.')] "forward in time";
        Now "0" [key('0')] "to the present";
        Cursor "c" [key('c')] "a cursor that shows values";
        Metric "m" [key('m')] "charts and mesh: next metric; memory: next kind of buffers";
        Overlay "o" [key('o')] "all devices in one, or the selected one";
        Filled "f" [key('f')] "lines or areas";
        Reversed "r" [key('r')] "the newest at the left or at the right";
    }
    "Replay" {
        PreviousFrame "[" [key('[')] "one sample back";
        NextFrame "]" [key(']')] "one sample forward";
        BackMinute "{" [key('{')] "one minute back";
        OnMinute "}" [key('}')] "one minute forward";
        PreviousEvent "(" [key('(')] "to the warning or incident before";
        NextEvent ")" [key(')')] "to the next warning or incident";
        Past "T" [key('T')] "the past, from the black box; again: the present";
    }
}

/// The keys of the last line, the most important first, and the words for them.
pub fn key_line(view: TopView) -> &'static [(Action, &'static str)] {
    use Action::*;
    match view {
        TopView::Overview => &[
            (Help, "Help"),
            (Quit, "Quit"),
            (NextView, "View"),
            (Device, "Device"),
            (Filter, "Filter"),
            (SortMenu, "Sort"),
            (Signal, "Signal"),
            (Pause, "Pause"),
            (Setup, "Setup"),
        ],
        TopView::Memory => &[
            (Help, "Help"),
            (Quit, "Quit"),
            (NextView, "View"),
            (Enter, "Open"),
            (Right, "Next list"),
            (NextDevice, "Next device"),
            (BankMap, "Bank map"),
            (Device, "Device"),
            (Metric, "Kind"),
            (Pause, "Pause"),
        ],
        TopView::Mesh => &[
            (Help, "Help"),
            (Quit, "Quit"),
            (NextView, "View"),
            (Enter, "Device"),
            (Metric, "Next metric"),
            (NextDevice, "Next chip"),
            (Pause, "Pause"),
        ],
        TopView::Events => &[
            (Help, "Help"),
            (Quit, "Quit"),
            (NextView, "View"),
            (Enter, "Details"),
            (Filter, "Filter"),
            (Device, "Device"),
            (Pause, "Pause"),
        ],
        TopView::Fleet => &[
            (Help, "Help"),
            (Quit, "Quit"),
            (Enter, "Open"),
            (Right, "Devices"),
            (Filter, "Filter"),
            (SortMenu, "Sort"),
            (Setup, "Setup"),
        ],
    }
}

pub fn binding(action: Action) -> Option<&'static Binding> {
    BINDINGS.iter().find(|binding| binding.action == action)
}

impl Action {
    /// Where a key moves to in a list with this last row.
    pub fn moved(self, at: usize, page: usize, last: usize) -> Option<usize> {
        let to = match self {
            Action::Up => at.saturating_sub(1),
            Action::Down => at + 1,
            Action::PageUp => at.saturating_sub(page),
            Action::PageDown => at + page,
            Action::Home => 0,
            Action::End => last,
            _ => return None,
        };
        Some(to.min(last))
    }
}

pub fn action(key: KeyPress) -> Option<Action> {
    // Shift is in the character already.
    let key = match key {
        (KeyCode::Char(c), modifiers) => (KeyCode::Char(c), modifiers - KeyModifiers::SHIFT),
        (KeyCode::BackTab, _) => (KeyCode::BackTab, NONE),
        other => other,
    };
    BINDINGS.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
}

/// Where a key scrolls to, where the last place to scroll to is this. The space bar is for the next page.
pub fn scrolled(key: KeyPress, at: usize, page: usize, last: usize) -> Option<usize> {
    let action = if key.0 == KeyCode::Char(' ') { Some(Action::PageDown) } else { action(key) };
    action?.moved(at, page, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        let mut all: Vec<String> =
            BINDINGS.iter().flat_map(|binding| binding.keys).map(|key| format!("{key:?}")).collect();
        let before = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), before);
    }

    #[test]
    fn nvtop_s_keys_work() {
        let keys = [
            f(2),
            f(5),
            f(6),
            f(9),
            f(10),
            f(12),
            key('q'),
            key('h'),
            key('j'),
            key('k'),
            key('l'),
            key('+'),
            key('-'),
        ];
        for key in keys {
            assert!(action(key).is_some(), "{key:?}");
        }
        assert_eq!(action((KeyCode::Char('G'), KeyModifiers::SHIFT)), Some(Action::End));
    }
}

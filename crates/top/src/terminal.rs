//! The terminal: taken, drawn on, and given back as it was, whatever happens.

use super::screen::{Buffer, Rect, write_changes};
use super::state::TopState;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::style::ResetColor;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use show::terminal::known_size;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A terminal that is ours until this is dropped.
pub struct TerminalScreen {
    /// What is to be written next.
    out: Vec<u8>,
    mouse: bool,
    /// What the terminal shows; of no size when that is not known.
    shown: Buffer,
    next: Buffer,
}

/// Whether the terminal is to be restored.
static TAKEN: AtomicBool = AtomicBool::new(false);

impl TerminalScreen {
    pub fn take(mouse: bool) -> io::Result<TerminalScreen> {
        // A panic must not leave the terminal unusable, and its message must be seen.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        let nothing = Buffer::empty(Rect::ZERO);
        let mut screen = TerminalScreen { out: Vec::new(), mouse, shown: nothing.clone(), next: nothing };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes it, first or again.
    pub fn enter(&mut self) -> io::Result<()> {
        let _alone = io::stdout().lock();
        TAKEN.store(true, SeqCst);
        enable_raw_mode()?;
        queue!(self.out, EnterAlternateScreen, Hide, EnableBracketedPaste)?;
        if self.mouse {
            queue!(self.out, EnableMouseCapture)?;
        }
        self.forget();
        self.flush()
    }

    /// The next frame is drawn completely.
    pub fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
    }

    pub fn draw(&mut self, state: &mut TopState) -> io::Result<()> {
        // Another thread that fails gives the terminal back: not in the middle of a picture, and none comes after.
        let _alone = io::stdout().lock();
        if !is_taken() {
            return Ok(());
        }
        let size = tcgetwinsize(rustix::stdio::stdout())?;
        let (width, height) = known_size(size.ws_col, size.ws_row);
        let area = Rect { x: 0, y: 0, width, height };
        let is_new = self.shown.area != area;
        if is_new {
            self.shown = Buffer::empty(area);
            self.next = Buffer::empty(area);
        }
        state.area = area;
        set_mouse(&mut self.out, &mut self.mouse, state.settings.mouse)?;
        self.next.reset();
        // Nothing is on its way to the terminal while this may panic.
        super::panels::draw(state, area, &mut self.next);
        queue!(self.out, BeginSynchronizedUpdate)?;
        if is_new {
            queue!(self.out, ResetColor, Clear(ClearType::All))?;
        }
        self.next.mend();
        write_changes(&mut self.out, &self.shown, &self.next);
        std::mem::swap(&mut self.shown, &mut self.next);
        queue!(self.out, EndSynchronizedUpdate)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&self.out)?;
        self.out.clear();
        out.flush()
    }
}

/// Reports of the mouse begin or end when that is chosen, not on the next start.
fn set_mouse(out: &mut impl Write, is_on: &mut bool, wanted: bool) -> io::Result<()> {
    if std::mem::replace(is_on, wanted) == wanted {
        return Ok(());
    }
    if wanted { queue!(out, EnableMouseCapture) } else { queue!(out, DisableMouseCapture) }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether there are keys that were not read.
pub fn has_keys() -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&now)) == Ok(1)
}

/// Wakes the thread that waits for keys: setting a terminal to what it is does that.
pub fn tell_again() {
    let _alone = io::stdout().lock();
    let stdin = io::stdin();
    if is_taken() {
        if let Ok(modes) = tcgetattr(&stdin) {
            let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
        }
    }
}

/// Whether the terminal is ours at the moment.
pub fn is_taken() -> bool {
    TAKEN.load(SeqCst)
}

/// Makes the terminal what it was before. There is no way to report a failure.
pub fn give_back() {
    let mut out = io::stdout().lock();
    if TAKEN.swap(false, SeqCst) {
        let _ = execute!(
            out,
            EndSynchronizedUpdate,
            DisableMouseCapture,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Show
        );
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::handle;
    use crate::settings::{CHOICES, TopSettings};
    use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn the_mouse_is_switched_when_it_is_chosen() {
        let mut state = TopState::new(TopSettings::default(), true);
        let (mut is_on, mut out) = (state.settings.mouse, Vec::new());
        let mut press = |key: KeyCode| {
            handle(&mut state, &Event::Key(KeyEvent::new(key, KeyModifiers::NONE)));
            out.clear();
            set_mouse(&mut out, &mut is_on, state.settings.mouse).unwrap();
            String::from_utf8(out.clone()).unwrap()
        };
        assert_eq!(press(KeyCode::F(2)), "", "opening the window changes nothing");
        let down = CHOICES.iter().position(|choice| choice.label == "Mouse").unwrap();
        for _ in 0..down {
            assert_eq!(press(KeyCode::Down), "");
        }
        let off = press(KeyCode::Char(' '));
        assert!(off.contains("\x1b[?1000l") && off.contains("\x1b[?1006l"), "{off:?}");
        assert_eq!(press(KeyCode::Up), "", "only once");
        let on = press(KeyCode::Esc);
        assert!(on.contains("\x1b[?1000h") && on.contains("\x1b[?1006h"), "reverted: {on:?}");
    }
}

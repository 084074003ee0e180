//! The terminal: taken, drawn on, and given back as it was, whatever happens.

use super::state::State;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A terminal that is ours until this is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    mouse: bool,
}

/// Whether somebody must give the terminal back.
static TAKEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    pub fn take(mouse: bool) -> io::Result<Screen> {
        // A panic must not leave the terminal unusable, and its message must be seen.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        let out = BufWriter::with_capacity(64 << 10, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(out))?;
        let mut screen = Screen { terminal, mouse };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes it, first or again.
    pub fn enter(&mut self) -> io::Result<()> {
        TAKEN.store(true, SeqCst);
        enable_raw_mode()?;
        let out = self.terminal.backend_mut();
        queue!(out, EnterAlternateScreen, Hide, EnableBracketedPaste)?;
        if self.mouse {
            queue!(out, EnableMouseCapture)?;
        }
        Write::flush(out)?;
        self.terminal.clear()
    }

    /// Gives it back for a while.
    pub fn leave(&mut self) {
        give_back();
    }

    /// Everything is sent anew with the next picture.
    pub fn forget(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Draws what has changed.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            state.area = frame.area();
            super::draw(state, frame.area(), frame.buffer_mut());
        })?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal what it was before. There is nobody left to tell when that fails.
fn give_back() {
    if TAKEN.swap(false, SeqCst) {
        let mut out = io::stdout();
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

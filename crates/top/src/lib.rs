//! `ttmon top`: the interactive monitor.
//!
//! One thread draws and listens to keys; another takes samples. What is drawn is a pure function of `TopState`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(test)]
mod any_machine;
mod app;
mod args;
mod column;
pub mod config;
mod cursor;
mod feed;
#[cfg(test)]
mod golden;
mod hosts;
mod input;
mod inspector;
mod keys;
mod order;
mod overlay;
mod paint;
mod panels;
mod pieces;
mod places;
mod player;
mod remote;
mod rows;
mod screen;
mod settings;
mod state;
mod terminal;
#[cfg(debug_assertions)]
mod test_panic;
mod theme;
mod trails;
mod unit_text;

pub use args::TopArgs;
use feed::SampleFeed;
use input::Input;
use inspector::Inspectors;
use model::Timestamp;
use panels::signals;
use places::ChipPlaces;
use rustix::event::{PollFd, PollFlags, poll};
use show::terminal::{is_dumb, locale_is_utf8, wants_color};
use signal_hook::consts::SIGWINCH;
use state::{Effect, TopState};
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use terminal::TerminalScreen;
use theme::Scheme;
use watch::args::MachineArgs;
use watch::exit::{Exit, Failure};
use watch::past::BlackBoxArgs;
use watch::wait::{Interrupt, Woken, on};

/// All keys, one per line.
pub fn key_help() -> String {
    keys::BINDINGS.iter().map(|binding| format!("{:>14}  {}\n", binding.shown, binding.help)).collect()
}

/// Runs the monitor until the user quits.
pub fn run(machine: &MachineArgs, args: &TopArgs) -> anyhow::Result<Exit> {
    let places = args.topology.as_deref().map(places).transpose()?.unwrap_or_default();
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let why = "`ttmon top` needs a terminal: use `ttmon smi`, or `ttmon record` to record samples";
        return Err(Failure::error(Exit::Usage, why));
    }
    if is_dumb() {
        let why = "`ttmon top` needs a terminal that can move its cursor, and TERM is dumb: use `ttmon smi -l 1`";
        return Err(Failure::error(Exit::Usage, why));
    }
    let file = watch::config::path(args.config.as_deref());
    let (mut settings, problems) = file.as_deref().map(config::load).unwrap_or_default();
    settings.read_only |= args.read_only;
    settings.ascii |= args.ascii;
    settings.fahrenheit |= args.fahrenheit;
    settings.reversed |= args.reversed;
    if args.no_charts {
        settings.charts.clear();
    }
    if args.no_color || !wants_color(true) {
        settings.theme = Scheme::Monochrome;
    }
    settings.interval_ms = args.interval.map_or(settings.interval_ms, |seconds| (seconds * 1000.0) as u64);
    let mut interrupt = Interrupt::new()?;
    interrupt.and_stop()?;
    let resized = on(&[SIGWINCH])?;
    resized.set_nonblocking(true)?;
    let mut state = TopState::new(settings, locale_is_utf8());
    state.places = places;
    state.has_processes = !args.no_processes;
    // A mistake in the file is shown, and stops nothing.
    if let (Ok(path), [first, ..]) = (&file, &problems[..]) {
        state.notice = Some(watch::config::said(path, first));
    }
    let source = SampleFeed::open(machine, args, &mut state)?;
    let inspectors = Inspectors::new(machine)?;
    // The first picture has figures on it, unless a device keeps it waiting.
    source.wait(FIRST_SAMPLE);
    let result = source.fill(&mut state).and_then(|()| {
        let mut screen = TerminalScreen::take(state.settings.mouse)?;
        let mut shell = Shell {
            screen: &mut screen,
            inspectors: &inspectors,
            input: Input::listen()?,
            interrupt: &interrupt,
            resized: &resized,
            file: file.as_deref().ok(),
        };
        shell.watch_all(&mut state, &source, machine, &args.stretch.black_box)
    });
    source.finish();
    result.map(|()| Exit::Success)
}

/// What there is one of, whatever is shown.
struct Shell<'a> {
    screen: &'a mut TerminalScreen,
    inspectors: &'a Inspectors,
    input: Input,
    interrupt: &'a Interrupt,
    resized: &'a UnixStream,
    file: Option<&'a Path>,
}

/// Why the loop has ended.
enum WatchEnd {
    Quit,
    /// The black box is wanted, at this moment.
    VisitPast(Timestamp),
    Return,
}

/// Where chips are by a cluster descriptor.
fn places(file: &Path) -> anyhow::Result<ChipPlaces> {
    let wrong = |why: String| Failure::error(Exit::Usage, format!("--topology {}: {why}", file.display()));
    let text = fs::read_to_string(file).map_err(|why| wrong(why.to_string()))?;
    ChipPlaces::described(text).map_err(|why| wrong(why.to_string()))
}

/// The first picture does not wait longer for its figures.
const FIRST_SAMPLE: Duration = Duration::from_millis(25);
/// By this picture the start is over.
const SETTLED: u64 = 5;

impl Shell<'_> {
    /// Shows the present, or what was asked for, and visits of the past, until it is enough.
    fn watch_all(
        &mut self,
        state: &mut TopState,
        source: &SampleFeed,
        machine: &MachineArgs,
        black_box: &BlackBoxArgs,
    ) -> anyhow::Result<()> {
        loop {
            let WatchEnd::VisitPast(at) = self.watch(state, source, None)? else { return Ok(()) };
            let mut past = state.for_the_past();
            let visited = match SampleFeed::visit(machine, black_box, at, &mut past) {
                Ok(visited) => visited,
                Err(why) => {
                    state.notice = Some(format!("{why:#}"));
                    continue;
                }
            };
            if let Some(replay) = &mut past.replay {
                replay.is_visit = true;
            }
            visited.wait(FIRST_SAMPLE);
            let ended = self.watch(&mut past, &visited, Some((&mut *state, source)));
            visited.finish();
            if !matches!(ended?, WatchEnd::Return) {
                return Ok(());
            }
        }
    }

    /// Draws, and waits for something to happen. What goes on meanwhile is followed, so that nothing is missing afterwards.
    fn watch(
        &mut self,
        state: &mut TopState,
        source: &SampleFeed,
        mut meanwhile: Option<(&mut TopState, &SampleFeed)>,
    ) -> anyhow::Result<WatchEnd> {
        for picture in 1u64.. {
            source.fill(state)?;
            if let Some((state, source)) = &mut meanwhile {
                source.fill(state)?;
            }
            self.inspectors.fill(state);
            self.screen.draw(state)?;
            if picture == SETTLED {
                ledger::forget_code();
            }
            match self.wait([Some(source), meanwhile.as_ref().map(|(_, source)| *source)]) {
                Woken::End => return Ok(WatchEnd::Quit),
                Woken::Stop => self.suspend()?,
                Woken::Time => {}
            }
            anyhow::ensure!(!self.input.is_over(), "cannot read keys");
            // What was typed while a picture was drawn is seen to before the next one.
            self.input.take().for_each(|event| app::handle(state, &event));
            for effect in std::mem::take(&mut state.effects) {
                match effect {
                    Effect::Quit => return Ok(WatchEnd::Quit),
                    Effect::VisitPast(at) => return Ok(WatchEnd::VisitPast(at)),
                    Effect::Return => return Ok(WatchEnd::Return),
                    Effect::Suspend => self.suspend()?,
                    Effect::Redraw => self.screen.forget(),
                    Effect::Inspect { pid, started_at } => self.inspectors.ask(pid, started_at, state),
                    effect => carry_out(effect, state, source, self.file),
                }
            }
            // A view that was just opened does not wait for the next sample.
            source.wish(state);
        }
        Ok(WatchEnd::Quit)
    }

    /// Waits for keys, a sample, a signal or a new size.
    fn wait(&self, sources: [Option<&SampleFeed>; 2]) -> Woken {
        let stdin = io::stdin();
        let (end, stop) = self.interrupt.pipes();
        let mut all = vec![
            // Only to know when the terminal is gone.
            PollFd::new(&stdin, PollFlags::empty()),
            PollFd::new(end, PollFlags::IN),
            PollFd::new(self.resized, PollFlags::IN),
            PollFd::new(&self.input.ready, PollFlags::IN),
            PollFd::new(&self.inspectors.ready, PollFlags::IN),
        ];
        all.extend(sources.into_iter().flatten().map(|source| PollFd::new(source.ready(), PollFlags::IN)));
        let stop_at = all.len();
        all.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
        let _ = poll(&mut all, None);
        let mut resized = self.resized;
        while matches!(resized.read(&mut [0; 64]), Ok(1..)) {}
        let came = |at: usize| all.get(at).is_some_and(|one: &PollFd| !one.revents().is_empty());
        match (came(0) || came(1), came(stop_at)) {
            (true, _) => Woken::End,
            (false, true) => Woken::Stop,
            (false, false) => Woken::Time,
        }
    }

    fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::give_back();
        self.interrupt.stop()?;
        self.screen.enter()?;
        Ok(())
    }
}

/// Does what neither the screen nor the loop is needed for.
fn carry_out(effect: Effect, state: &mut TopState, source: &SampleFeed, file: Option<&Path>) {
    match effect {
        Effect::Interval => source.set_interval(Duration::from_millis(state.settings.interval_ms)),
        // A process with this pid here is another one.
        Effect::Send { .. } if state.hosts.is_some() => state.notice = Some(signals::REMOTE.into()),
        Effect::Send { signal, to } => state.notice = Some(signals::send(signal, &to)),
        Effect::Save => {
            let saved = file.ok_or_else(|| "no configuration directory".into());
            let saved = saved.and_then(|file| config::save(file, &state.settings).map(|()| file));
            state.notice = Some(saved.map_or_else(|why| why, |file| format!("saved to {}", file.display())));
        }
        Effect::Play(wish) => source.play(wish),
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Inspect { .. }
        | Effect::VisitPast(_)
        | Effect::Return => {}
    }
}

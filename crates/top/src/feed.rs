//! Where samples come from: the machine or a recording, in a thread of its own.

use super::panels::shows_rates;
use super::player::{PlayCommand, Played, Player};
use super::remote::RemoteFeed;
use super::state::{Replay, TopState, TopView};
#[cfg(debug_assertions)]
use super::test_panic;
use crate::args::TopArgs;
use model::{Fault, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::config::alerts_of_user;
use watch::exit_status;
use watch::machine::Machine;
use watch::moment::{DetailWishes, Moment, take};
use watch::past::{BlackBoxArgs, Stretch};
use watch::record::{LoggedRecorder, Recording};
use watch::sampling::Sampling;
use watch::selection::{keep_selected, selected};

pub enum SampleFeed {
    Live(Sampling<Moment>, Arc<DetailWishes>),
    Past(Player),
    Remote(RemoteFeed, Vec<String>),
}

impl SampleFeed {
    /// Begins with what the command line names.
    pub fn open(machine: &MachineArgs, args: &TopArgs, state: &mut TopState) -> anyhow::Result<SampleFeed> {
        if args.is_of_the_past() {
            return SampleFeed::open_past(machine, args, state);
        }
        if machine.is_remote() {
            return Ok(SampleFeed::Remote(RemoteFeed::open(machine, state)?, args.devices.id.clone()));
        }
        // A recording has everything in it, as fresh as can be.
        let opened = if args.record.is_some() { Machine::open(machine, true) } else { Machine::open_relaxed(machine) };
        let mut machine = opened?
            .through_service(machine)
            .with_deep(args.deep.deep)?
            .watched(&alerts_of_user(args.config.as_deref()));
        machine.set_kernel_log(args.kernel_log);
        let mut recorder = RecordingWriter::Planned(args.record.clone());
        let (names, mut is_first) = (args.devices.id.clone(), true);
        let wishes = Arc::new(DetailWishes::default());
        let wished = wishes.clone();
        let interval = Duration::from_millis(state.settings.interval_ms);
        let take = move |machine: &mut Machine, _: bool| {
            #[cfg(debug_assertions)]
            test_panic::maybe("sampling");
            let mut moment = take(machine, &wished);
            if std::mem::take(&mut is_first) && !moment.snapshot.devices.is_empty() {
                // A name that is none is said at once; later a device may be lost.
                if let Err(error) = selected(moment.snapshot.clone(), &names) {
                    moment.nothing = Some(error);
                    return moment;
                }
                moment.past = machine.past(&moment.snapshot);
                moment.past.iter_mut().for_each(|past| keep_selected(past, &names));
            }
            keep_selected(&mut moment.snapshot, &names);
            moment.nothing = recorder.keep(machine, &mut moment).err();
            moment
        };
        let sampling = Sampling::start(machine, interval, take)?;
        sampling.hurry();
        Ok(SampleFeed::Live(sampling, wishes))
    }

    /// A recording, or a part of it or of the black box.
    fn open_past(machine: &MachineArgs, args: &TopArgs, state: &mut TopState) -> anyhow::Result<SampleFeed> {
        let (path, stretch) = (args.replay.as_deref(), &args.stretch);
        let (playing, start) = match &args.at {
            Some(at) => stretch.around(machine, path, at).map(|(stretch, at)| (stretch, Some(at)))?,
            None => (stretch.open(machine, path)?, None),
        };
        let again = path.map_or_else(|| stretch.black_box.open(machine), Recording::open)?;
        let scanning = Stretch { recording: again, ..playing };
        let file = path.map_or("black box".into(), |path| {
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        });
        SampleFeed::play_stretch(playing, scanning, start, file, state)
    }

    /// Half an hour of the black box before and after a moment.
    pub fn visit(
        machine: &MachineArgs,
        black_box: &BlackBoxArgs,
        at: Timestamp,
        state: &mut TopState,
    ) -> anyhow::Result<SampleFeed> {
        let playing = Stretch::around(black_box.open(machine)?, at)?;
        let scanning = Stretch::around(black_box.open(machine)?, at)?;
        SampleFeed::play_stretch(playing, scanning, Some(at), "black box".into(), state)
    }

    fn play_stretch(
        mut playing: Stretch,
        mut scanning: Stretch,
        start: Option<Timestamp>,
        file: String,
        state: &mut TopState,
    ) -> anyhow::Result<SampleFeed> {
        // The black box may have gone on between the two.
        let to = playing.to.min(scanning.recording.span().1);
        (playing.to, scanning.to) = (to, to);
        let player = Player::open(playing, scanning, start)?;
        state.paused = start.is_some();
        state.replay = Some(Replay { file, len: player.len, speed: 1.0, span: player.span, ..Replay::default() });
        state.keep_moments(player.scanned);
        Ok(SampleFeed::Past(player))
    }

    /// Can be read when there is something new.
    pub fn ready(&self) -> &UnixStream {
        match self {
            SampleFeed::Live(sampling, _) => &sampling.ready,
            SampleFeed::Past(player) => &player.ready,
            SampleFeed::Remote(feed, _) => &feed.ready,
        }
    }

    /// Waits for the first sample, but not longer than this.
    pub fn wait(&self, time: Duration) {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(self.ready(), PollFlags::IN)], Some(&timeout));
    }

    /// Puts what is new into the state. The reason when there is nothing to show at all.
    pub fn fill(&self, state: &mut TopState) -> anyhow::Result<()> {
        let is_over = match self {
            SampleFeed::Live(sampling, _) => sampling.is_over(),
            SampleFeed::Past(player) => player.is_over(),
            SampleFeed::Remote(feed, _) => feed.is_over(),
        };
        // A picture that never changes again would be a lie.
        anyhow::ensure!(!is_over, "sampling has failed: there are no more samples");
        match self {
            SampleFeed::Live(sampling, _) => {
                if let Some((_, mut moment)) = sampling.take() {
                    moment.nothing.take().map_or(Ok(()), Err)?;
                    state.begin_with(std::mem::take(&mut moment.past));
                    state.take(moment);
                }
            }
            SampleFeed::Remote(feed, names) => {
                if let Some((mut fleet, summaries)) = feed.take() {
                    let snapshots = fleet.hosts.iter_mut().filter_map(|host| host.snapshot.as_mut());
                    if !names.is_empty() {
                        snapshots.for_each(|snapshot| keep_selected(Arc::make_mut(snapshot), names));
                    }
                    state.take_fleet(fleet, summaries);
                }
            }
            SampleFeed::Past(player) => {
                for played in player.take() {
                    match played {
                        Played::Past(snapshots) => state.take_past(snapshots),
                        Played::Log(events, exits) => state.take_log(&events, exits),
                        Played::Now(at, moment) => state.take_played(at, *moment),
                        Played::Broken(why) => state.notice = Some(why),
                    }
                }
            }
        }
        Ok(())
    }

    pub fn set_interval(&self, interval: Duration) {
        match self {
            SampleFeed::Live(sampling, _) => {
                sampling.set_interval(interval);
                sampling.hurry();
            }
            SampleFeed::Remote(feed, _) => feed.watch.set_interval(interval),
            SampleFeed::Past(_) => {}
        }
    }

    pub fn play(&self, wish: PlayCommand) {
        if let SampleFeed::Past(player) = self {
            let _ = player.wishes.send(wish);
        }
    }

    /// Says what is looked at. Whatever was not looked at before does not wait for the next sample.
    pub fn wish(&self, state: &TopState) {
        let (memory, process) = (state.view == TopView::Memory, state.process_in_detail());
        match self {
            SampleFeed::Live(sampling, wishes) if wishes.set(memory, process, shows_rates(state)) => sampling.hurry(),
            SampleFeed::Remote(feed, _) => feed.wish(state, memory, process),
            SampleFeed::Live(..) | SampleFeed::Past(_) => {}
        }
    }

    pub fn finish(self) {
        match self {
            SampleFeed::Live(sampling, _) => sampling.finish(),
            SampleFeed::Remote(feed, _) => feed.finish(),
            SampleFeed::Past(_) => {}
        }
    }
}

/// The file that everything is written to, besides.
enum RecordingWriter {
    /// Before the first sample. No file for a machine without devices.
    Planned(Option<PathBuf>),
    Running(Box<LoggedRecorder>),
    Over,
}

impl RecordingWriter {
    /// Writes a sample with what is new, if that is wanted. One that cannot be written ends the recording, and says so. The reason when there is
    /// nothing from the start: it is worth more than an empty screen.
    fn keep(&mut self, machine: &Machine, moment: &mut Moment) -> anyhow::Result<()> {
        if let RecordingWriter::Planned(path) = self {
            exit_status::of_machine(&moment.snapshot, machine)?;
            *self = match path {
                Some(path) => RecordingWriter::Running(Box::new(LoggedRecorder::create(path)?)),
                None => RecordingWriter::Over,
            };
        }
        if let RecordingWriter::Running(recorder) = self {
            if let Err(error) = recorder.push(&moment.snapshot, moment.exits.clone()) {
                *self = RecordingWriter::Over;
                moment.snapshot.faults.push(Fault::new("--record", format!("recording stopped: {error}")));
            }
        }
        Ok(())
    }
}

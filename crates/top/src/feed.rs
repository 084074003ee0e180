//! Where samples come from: the machine or a recording, in a thread of its own.

use super::far::FarFeed;
use super::mishap;
use super::player::{Played, Player, Wish};
use super::state::{Replay, State, View};
use crate::args::Args;
use model::{Fault, Snapshot};
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
use watch::record::Recorder;
use watch::sampling::Sampling;

/// Where samples come from.
pub enum Source {
    Live(Sampling<Moment>, Arc<DetailWishes>),
    Past(Player),
    Far(FarFeed),
}

impl Source {
    /// Begins with what the command line names.
    pub fn open(machine: &MachineArgs, args: &Args, state: &mut State) -> anyhow::Result<Source> {
        if let Some(path) = &args.replay {
            let player = Player::open(path)?;
            let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            state.replay = Some(Replay { file, at: 0, len: player.len, speed: 1.0 });
            state.keep_moments(player.len);
            return Ok(Source::Past(player));
        }
        if machine.is_remote() {
            return Ok(Source::Far(FarFeed::open(machine, state)?));
        }
        // A recording has everything in it, as fresh as can be.
        let opened = if args.record.is_some() { Machine::open(machine, true) } else { Machine::open_relaxed(machine) };
        let machine = opened?.through_service(machine).watched(&alerts_of_user(args.config.as_deref()));
        let mut recorder = Recording::Planned(args.record.clone());
        let wishes = Arc::new(DetailWishes::default());
        let wished = wishes.clone();
        let interval = Duration::from_millis(state.settings.interval_ms);
        let take = move |machine: &mut Machine, _: bool| {
            mishap::maybe("sampling");
            let mut moment = take(machine, &wished);
            moment.nothing = recorder.keep(machine, &mut moment.snapshot).err();
            moment
        };
        let sampling = Sampling::start(machine, interval, take)?;
        sampling.hurry();
        Ok(Source::Live(sampling, wishes))
    }

    /// Can be read when there is something new.
    pub fn ready(&self) -> &UnixStream {
        match self {
            Source::Live(sampling, _) => &sampling.ready,
            Source::Past(player) => &player.ready,
            Source::Far(feed) => &feed.ready,
        }
    }

    /// Waits for the first sample, but not longer than this.
    pub fn wait(&self, time: Duration) {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(self.ready(), PollFlags::IN)], Some(&timeout));
    }

    /// Puts what is new into the state. The reason when there is nothing to show at all.
    pub fn fill(&self, state: &mut State) -> anyhow::Result<()> {
        let is_over = match self {
            Source::Live(sampling, _) => sampling.is_over(),
            Source::Past(player) => player.is_over(),
            Source::Far(feed) => feed.is_over(),
        };
        // A picture that never changes again would be a lie.
        anyhow::ensure!(!is_over, "there are no more samples: the part of ttmon that takes them has failed");
        match self {
            Source::Live(sampling, _) => {
                if let Some((_, mut moment)) = sampling.take() {
                    moment.nothing.take().map_or(Ok(()), Err)?;
                    state.take(moment);
                }
            }
            Source::Far(feed) => {
                if let Some((fleet, summaries)) = feed.take() {
                    state.take_fleet(fleet, summaries);
                }
            }
            Source::Past(player) => {
                for played in player.take() {
                    match played {
                        Played::Past(snapshots) => state.take_past(snapshots),
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
            Source::Live(sampling, _) => {
                sampling.set_interval(interval);
                sampling.hurry();
            }
            Source::Far(feed) => feed.set_interval(interval),
            Source::Past(_) => {}
        }
    }

    pub fn play(&self, wish: Wish) {
        if let Source::Past(player) = self {
            player.wish(wish);
        }
    }

    /// Says what is looked at. Whatever was not looked at before does not wait for the next sample.
    pub fn wish(&self, state: &State) {
        let (memory, process) = (state.view == View::Memory, state.process_in_detail());
        match self {
            Source::Live(sampling, wishes) if wishes.set(memory, process) => sampling.hurry(),
            Source::Far(feed) => feed.wish(state, memory, process),
            Source::Live(..) | Source::Past(_) => {}
        }
    }

    pub fn finish(self) {
        match self {
            Source::Live(sampling, _) => sampling.finish(),
            Source::Far(feed) => feed.finish(),
            Source::Past(_) => {}
        }
    }
}

/// The file that everything is written to, besides.
enum Recording {
    /// Before the first sample. No file for a machine without devices.
    Planned(Option<PathBuf>),
    Running(Recorder),
    Over,
}

impl Recording {
    /// Writes a sample, if that is wanted. One that cannot be written ends the recording, and says so. The reason when there is
    /// nothing from the start: it is worth more than an empty screen.
    fn keep(&mut self, machine: &Machine, snapshot: &mut Snapshot) -> anyhow::Result<()> {
        if let Recording::Planned(path) = self {
            exit_status::of_machine(snapshot, machine)?;
            *self = match path {
                Some(path) => Recording::Running(Recorder::create(path)?),
                None => Recording::Over,
            };
        }
        if let Recording::Running(recorder) = self
            && let Err(error) = recorder.push(snapshot)
        {
            *self = Recording::Over;
            snapshot.faults.push(Fault::new("--record", format!("the recording has ended: {error}")));
        }
        Ok(())
    }
}

//! One device of the machine, and what is the matter with it.

use crate::BoardKind;
use crate::inject::InjectedFault;
use crate::motion::Motion;
use crate::tree::{Chip, is_at_power_limit, is_too_hot, telemetry_table};
use crate::wave::TICKS_PER_SECOND;
use std::time::Duration;

pub(crate) struct SimDevice {
    /// The chip as it would be without a fault.
    pub chip: Chip,
    motion: Motion,
    pub state: SimState,
    /// Its firmware heartbeat has stopped.
    pub frozen: bool,
    /// Its readers wait forever.
    pub stuck: bool,
    /// For how long its cores have worked since the start of the machine.
    pub busy: Duration,
    /// The last tick at which it could work.
    pub worked_until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimState {
    Answering,
    Hung,
    /// Until this tick.
    Resetting(u64),
    Lost,
}

impl SimDevice {
    pub fn new(kind: BoardKind, index: u32, seed: u64) -> SimDevice {
        let motion = Motion::new(kind, index.into(), seed);
        let mut chip = Chip::of(kind, index);
        motion.show(&mut chip);
        SimDevice {
            chip,
            motion,
            state: SimState::Answering,
            frozen: false,
            stuck: false,
            busy: Duration::ZERO,
            worked_until: 0,
        }
    }

    /// One tick in which its job keeps it so busy, with so much effort, if it can work at all.
    pub fn tick(&mut self, now: u64, load: f64, effort: f64) {
        self.state = match self.state {
            SimState::Resetting(until) if until <= now => SimState::Answering,
            state => state,
        };
        if self.state == SimState::Answering {
            self.worked_until = now;
        }
        let (load, effort) = if self.state == SimState::Answering { (load, effort) } else { (0.0, 0.0) };
        let beats = !self.frozen && !matches!(self.state, SimState::Resetting(_));
        self.busy += Duration::from_secs_f64(load.clamp(0.0, 1.0) / TICKS_PER_SECOND as f64);
        self.motion.tick(effort, beats);
        self.motion.show(&mut self.chip);
        if is_too_hot(&self.chip) {
            self.chip.aiclk = self.chip.aiclk.map(|clock| clock - clock / 3);
        }
        if self.motion.celsius() >= TRIP_CELSIUS {
            self.shut_down(now);
        }
        if self.chip.table.is_some() {
            // Firmware that says what limits the clock also limits it.
            if is_at_power_limit(&self.chip) && !is_too_hot(&self.chip) {
                self.chip.aiclk = self.chip.aiclk.map(|clock| clock - clock / 9);
            }
            self.chip.table = Some(telemetry_table(&self.chip));
        }
    }

    /// Lets the node have a table to read, of a firmware that publishes everything.
    pub fn with_table(mut self) -> SimDevice {
        self.chip.fw_bundle = Some("19.15.0.0".into());
        self.chip.table = Some(telemetry_table(&self.chip));
        self
    }

    /// Its cooling fails.
    pub fn heat(&mut self) {
        self.motion.uncooled = true;
    }

    /// It is too hot, shuts down, and starts again when it has cooled.
    fn shut_down(&mut self, now: u64) {
        self.chip.therm_trip_count = self.chip.therm_trip_count.map(|trips| trips + 1);
        self.motion.cool();
        self.reset(now);
    }

    pub fn reset(&mut self, now: u64) {
        self.state = SimState::Resetting(now + RESET_TICKS);
        self.frozen = false;
        // At once, so that no old value is left for the first to read when the errors end.
        self.motion.restart();
    }

    /// What its files say.
    pub fn shown(&self) -> Chip {
        match self.state {
            SimState::Hung => self.chip.hung(),
            // The counters are the only files of a resetting chip that can be read, and no firmware answers.
            SimState::Resetting(_) => Chip { counters: Some([u32::MAX; 12]), ..self.chip.clone() },
            SimState::Answering | SimState::Lost => self.chip.clone(),
        }
    }

    /// What its files cannot say.
    pub fn trouble(&self) -> Option<InjectedFault> {
        match self.state {
            SimState::Lost => None,
            _ if self.stuck => Some(InjectedFault::Stuck),
            SimState::Resetting(_) => Some(InjectedFault::Resetting),
            _ => None,
        }
    }
}

const RESET_TICKS: u64 = 3 * TICKS_PER_SECOND;
/// At this temperature a chip shuts down.
const TRIP_CELSIUS: f64 = 110.0;

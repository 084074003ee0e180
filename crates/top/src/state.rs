//! Everything that is drawn, and nothing that draws. `App::handle` and `App::take` change it; panels only look.

use super::hosts::Hosts;
use super::order::DeviceOrder;
pub use super::overlay::Overlay;
use super::overlay::{Charts, EventsChosen, Inspection, MemoryChosen, MeshChosen};
use super::places::ChipPlaces;
use super::player::PlayCommand;
use super::rows::{ProcessRows, ProcessTable};
use super::settings::TopSettings;
use super::theme::Theme;
use super::trails::Trails;
use crate::screen::Rect;
use jiff::tz::TimeZone;
use model::figure::Field;
use model::figure::device::{ASIC_TEMP, UTILIZATION};
use model::{Device, DeviceId, Event, ExitRecord, History, Snapshot, Timestamp, earlier_devices};
use std::sync::Arc;
use watch::events::Events;
use watch::fleet::summary::Summary;
use watch::fleet::{self as fleet_data, Fleet};
use watch::moment::{Moment, ProcessDetail};

pub struct TopState {
    pub settings: TopSettings,
    pub theme: Theme,
    /// Whether the terminal shows characters beyond ASCII.
    unicode: bool,
    /// Where the clocks are that people here look at.
    pub zone: TimeZone,
    pub latest: Arc<Moment>,
    /// What is on the screen: the same, unless the picture is held.
    pub shown: Arc<Moment>,
    pub history: History,
    pub trails: Trails,
    pub places: ChipPlaces,
    /// The devices in the order in which they are listed.
    pub order: DeviceOrder,
    pub events: Events,
    /// What is chosen in the list of events.
    pub chosen_events: EventsChosen,
    /// The last part of a recording that was looked through for events.
    scanned: Moment,
    pub view: TopView,
    /// Whether the overview has a list of processes.
    pub has_processes: bool,
    pub device: Option<DeviceId>,
    pub charts: Charts,
    pub table: ProcessTable,
    pub rows: ProcessRows,
    pub memory: MemoryChosen,
    pub mesh: MeshChosen,
    pub overlay: Option<Overlay>,
    /// What was asked last of a process.
    pub inspection: Option<Inspection>,
    pub paused: bool,
    /// Other machines that are looked at instead of this one.
    pub hosts: Option<Hosts>,
    /// What was taken last of the machine that is looked at.
    taken: Option<TakenAnswer>,
    /// Whether the charts have what was measured there before anybody looked.
    has_past: bool,
    /// The past that is shown instead of the present.
    pub replay: Option<Replay>,
    /// One line for people, until the next key.
    pub notice: Option<String>,
    /// What the shell around this shall do.
    pub effects: Vec<Effect>,
    /// Where it was drawn last: what a click means depends on it.
    pub area: Rect,
}

model::named! {
    #[derive(Default)]
    pub enum TopView {
        /// Several machines, of which one can be looked at.
        Fleet = "Fleet",
        #[default]
        Overview = "Overview",
        Memory = "Memory",
        Mesh = "Mesh",
        Events = "Events",
    }
}

/// What only the shell can do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    Suspend,
    Redraw,
    /// The settings are written to the configuration file.
    Save,
    Interval,
    /// A signal goes to these processes: pid and, where it is known, when each began.
    Send {
        signal: i32,
        to: Vec<(u32, Option<Timestamp>)>,
    },
    /// The Inspector of this process is asked: pid and, where it is known, when it began.
    Inspect {
        pid: u32,
        started_at: Option<Timestamp>,
    },
    /// The replay goes somewhere, or at another pace.
    Play(PlayCommand),
    /// The past is shown, from the black box.
    VisitPast(Timestamp),
    /// The present is shown again.
    Return,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Replay {
    pub file: String,
    pub at: usize,
    pub len: usize,
    /// How many times faster than it was.
    pub speed: f64,
    /// From when to when it is.
    pub span: (Timestamp, Timestamp),
    /// The processes that exited in it, the earliest first. None where it has no log.
    pub exits: Option<Vec<ExitRecord>>,
    /// Whether there is a present to go back to.
    pub is_visit: bool,
}

impl Replay {
    /// How many exited processes are listed.
    const EXITS: usize = 20;

    /// The last processes that had exited by a moment, the latest first.
    fn exits_until(&self, moment: Timestamp) -> Vec<ExitRecord> {
        let exits = self.exits.iter().flatten().rev().filter(|exit| exit.died_at <= moment);
        exits.take(Replay::EXITS).cloned().collect()
    }
}

/// From so many columns on, four charts are side by side.
const FOUR_CHARTS: u16 = 144;

/// The last answer of a machine, and its details.
type TakenAnswer = (Arc<Snapshot>, Option<Arc<fleet_data::HostDetail>>);

/// As many moments as the charts can show.
fn moments(settings: &TopSettings) -> usize {
    (settings.history_seconds * 1000 / settings.interval_ms.max(1)).clamp(60, 100_000) as usize
}

impl TopState {
    pub fn new(settings: TopSettings, unicode: bool) -> TopState {
        let theme = Theme { scheme: settings.theme, unicode: unicode && !settings.ascii };
        let moments = moments(&settings);
        let empty = Arc::new(Moment::default());
        TopState {
            settings,
            theme,
            unicode,
            zone: TimeZone::system(),
            latest: empty.clone(),
            shown: empty,
            history: History::new(moments),
            trails: Trails::default(),
            places: ChipPlaces::default(),
            order: DeviceOrder::default(),
            events: Events::default(),
            chosen_events: EventsChosen::default(),
            scanned: Moment::default(),
            has_processes: true,
            view: TopView::default(),
            device: None,
            charts: Charts::default(),
            table: ProcessTable::default(),
            rows: ProcessRows::default(),
            memory: MemoryChosen::default(),
            mesh: MeshChosen::default(),
            overlay: None,
            inspection: None,
            paused: false,
            hosts: None,
            taken: None,
            has_past: false,
            replay: None,
            notice: None,
            effects: Vec::new(),
            area: Rect::default(),
        }
    }

    pub fn take(&mut self, moment: Moment) {
        let before = self.latest.clone();
        let moment = Arc::new(moment);
        self.history.push(&moment.snapshot);
        self.trails.push(&moment.snapshot);
        self.places.notice(&moment.snapshot.devices);
        let more = self.events.notice(before.observation(), moment.observation());
        self.keep_scroll(more);
        self.show(moment);
    }

    /// Updates the process table when what is shown, the filter or the order has changed.
    pub fn refresh_rows(&mut self) {
        if self.rows.update(&self.shown, &self.trails, &self.table.filter, &self.settings) {
            self.table.keep(&self.rows);
        }
        if self.view == TopView::Events {
            self.chosen_events.read_until = self.now().min(self.latest.snapshot.taken_at);
        }
    }

    /// Looks at other machines, or at one alone.
    pub fn watch(&mut self, fleet: Fleet, is_alone: bool) {
        let hosts = Hosts::new(fleet, is_alone);
        self.view = if hosts.is_alone { TopView::Overview } else { TopView::Fleet };
        self.hosts = Some(hosts);
    }

    /// What is known of other machines now.
    pub fn take_fleet(&mut self, fleet: Fleet, summaries: Vec<Summary>) {
        if self.paused {
            return;
        }
        if let Some(hosts) = &mut self.hosts {
            hosts.take(fleet, summaries);
        }
        self.take_current();
    }

    /// What is known of the machine that is looked at.
    fn take_current(&mut self) {
        let Some(host) = self.hosts.as_ref().and_then(Hosts::current) else { return };
        let answers = host.trouble().is_none();
        let now = host.snapshot.clone().map(|snapshot| (snapshot, host.detail.clone()));
        // News of other machines is no news of this one.
        let is_same = |(a, b): (&TakenAnswer, &TakenAnswer)| {
            Arc::ptr_eq(&a.0, &b.0) && a.1.as_ref().map(Arc::as_ptr) == b.1.as_ref().map(Arc::as_ptr)
        };
        if answers && self.taken.as_ref().zip(now.as_ref()).is_some_and(is_same) {
            return;
        }
        let (Some(snapshot), closer) = (host.aged(), host.detail.clone()) else { return };
        self.taken = now.filter(|_| answers);
        let mut moment = Moment::of(snapshot);
        if let Some(closer) = &closer {
            moment.memory = closer.memory.clone();
            moment.process = closer.process.as_ref().map(|(pid, buffers)| ProcessDetail::remote(*pid, buffers.clone()));
            moment.exits = closer.exits.clone();
        }
        if let Some(closer) = closer.filter(|_| !self.has_past) {
            self.has_past = true;
            if !closer.past.is_empty() {
                self.history = History::new(moments(&self.settings));
            }
            let before = closer.past.iter().filter(|past| past.taken_at < moment.snapshot.taken_at);
            before.for_each(|past| self.history.push(past));
            self.events.begin_with(&closer.events);
        }
        if answers {
            return self.take(moment);
        }
        // What is old is shown, but was not measured again.
        let more = self.events.notice(self.latest.observation(), moment.observation());
        self.keep_scroll(more);
        self.show(Arc::new(moment));
    }

    /// Shows a moment, unless the picture is held.
    fn show(&mut self, moment: Arc<Moment>) {
        self.latest = moment;
        if !self.paused || self.replay.is_some() {
            self.show_latest();
        }
        self.keep_selection();
        self.refresh_rows();
    }

    /// Shows what is known now. The selection stays with its device, whose number may have changed.
    pub fn show_latest(&mut self) {
        let devices = &self.latest.snapshot.devices;
        let earlier = earlier_devices(self.devices(), devices);
        let selected =
            |earlier: &Option<&Device>| earlier.is_some_and(|earlier| self.device.as_ref() == Some(&earlier.id));
        if let Some(at) = earlier.iter().position(selected) {
            self.device = Some(devices[at].id.clone());
        }
        self.shown = self.latest.clone();
        self.order.update(&self.shown.snapshot.devices);
    }

    /// Goes to a machine. What was known of another one is forgotten.
    pub fn enter(&mut self, name: &str) {
        let Some(hosts) = self.hosts.as_mut().filter(|hosts| hosts.entered.as_deref() != Some(name)) else { return };
        hosts.entered = Some(name.to_owned());
        let fresh = TopState::new(self.settings.clone(), self.unicode);
        let (hosts, zone, area) = (self.hosts.take(), self.zone.clone(), self.area);
        let (effects, theme) = (std::mem::take(&mut self.effects), self.theme);
        *self = TopState { hosts, zone, area, effects, theme, ..fresh };
        self.take_current();
    }

    /// The same screen for a visit of the past.
    pub fn for_the_past(&self) -> TopState {
        TopState {
            theme: self.theme,
            zone: self.zone.clone(),
            places: self.places.clone(),
            view: self.view,
            has_processes: self.has_processes,
            device: self.device.clone(),
            area: self.area,
            ..TopState::new(self.settings.clone(), self.unicode)
        }
    }

    /// The charts that were chosen. Where nobody chose, there is none of utilization until it is known of a device, and then it
    /// takes the place of the temperature, which is beside the name of each device, unless there is room for both.
    pub fn chosen_charts(&self) -> Vec<Field<Device>> {
        let mut charts = self.settings.charts.clone();
        if charts == TopSettings::default().charts {
            let is_left_out = match self.history.knows(UTILIZATION.field()) {
                false => Some(&UTILIZATION),
                true => Some(&ASIC_TEMP).filter(|_| self.area.width < FOUR_CHARTS),
            };
            charts.retain(|field| Some(field.figure) != is_left_out);
        }
        charts
    }

    pub fn views(&self) -> &'static [TopView] {
        let all: &'static [TopView] = &TopView::ALL;
        // That of all machines comes first.
        if self.hosts.as_ref().is_some_and(|hosts| !hosts.is_alone) { all } else { &all[1..] }
    }

    /// Who reads an old event goes on reading it when there are more.
    fn keep_scroll(&mut self, more: usize) {
        if self.chosen_events.at > 0 {
            self.chosen_events.at += more;
        }
    }

    /// A part of a recording, for charts and events.
    pub fn take_past(&mut self, snapshots: Vec<Snapshot>) {
        for snapshot in snapshots {
            self.history.push(&snapshot);
            if self.has_log() {
                continue;
            }
            let moment = Moment::of(snapshot);
            let before = std::mem::replace(&mut self.scanned, moment);
            let more = self.events.notice(before.observation(), self.scanned.observation());
            self.keep_scroll(more);
        }
    }

    /// What was before the first moment.
    pub fn begin_with(&mut self, past: Vec<Snapshot>) {
        past.iter().for_each(|snapshot| self.trails.push(snapshot));
        self.take_past(past);
        if self.latest.snapshot.taken_at < self.scanned.snapshot.taken_at {
            self.latest = Arc::new(std::mem::take(&mut self.scanned));
        }
    }

    /// What the log of a recording says.
    pub fn take_log(&mut self, events: &[Event], exits: Vec<ExitRecord>) {
        self.events.begin_with(events);
        if let Some(replay) = &mut self.replay {
            replay.exits = Some(exits);
        }
    }

    /// Whether a recording is shown that says itself what happened.
    fn has_log(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.exits.is_some())
    }

    /// The sample of a recording that is to be shown.
    pub fn take_played(&mut self, at: usize, mut moment: Moment) {
        if moment.snapshot.taken_at < self.latest.snapshot.taken_at {
            self.trails = Trails::default();
        }
        self.trails.push(&moment.snapshot);
        self.places.notice(&moment.snapshot.devices);
        if let Some(replay) = &mut self.replay {
            replay.at = at;
            moment.exits = replay.exits_until(moment.snapshot.taken_at);
        }
        self.show(Arc::new(moment));
    }

    /// The moment until which events are shown: a replay is in the past.
    pub fn now(&self) -> Timestamp {
        if self.replay.is_some() { self.snapshot().taken_at } else { Timestamp(i64::MAX) }
    }

    /// A moment as the clocks here show it.
    pub fn local(&self, moment: Timestamp) -> jiff::Zoned {
        jiff::Timestamp::from_millisecond(moment.0).unwrap_or_default().to_zoned(self.zone.clone())
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.shown.snapshot
    }

    pub fn devices(&self) -> &[Device] {
        &self.shown.snapshot.devices
    }

    pub fn selected_device(&self) -> Option<&Device> {
        let id = self.device.as_ref()?;
        self.devices().iter().find(|device| device.id == *id)
    }

    /// The devices as they are listed.
    pub fn listed(&self) -> impl Iterator<Item = &Device> {
        self.order.listed(self.devices())
    }

    /// Selects another device, so many places further in the list.
    pub fn step_device(&mut self, steps: isize) {
        let to = self.order.step(self.devices(), self.device.as_ref(), steps);
        self.device = to.or(self.device.take());
    }

    pub fn process_in_detail(&self) -> Option<u32> {
        match &self.overlay {
            Some(Overlay::Detail(detail)) => Some(detail.pid),
            _ => None,
        }
    }

    /// A selection means something that is there.
    fn keep_selection(&mut self) {
        if self.selected_device().is_none() {
            self.device = self.devices().first().map(|device| device.id.clone());
        }
        let lives = |pid: &u32| self.latest.snapshot.processes.iter().any(|process| process.pid == *pid);
        let tagged = std::mem::take(&mut self.table.tagged);
        self.table.tagged = tagged.into_iter().filter(lives).collect();
    }

    /// As many moments as a recording has are remembered, within reason.
    pub fn keep_moments(&mut self, number: usize) {
        self.history = History::new(number.clamp(60, 100_000));
    }

    pub fn set_theme(&mut self) {
        self.theme.scheme = self.settings.theme;
        self.theme.unicode = self.unicode && !self.settings.ascii;
    }
}

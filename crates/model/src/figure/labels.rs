//! Figures with one value per label: a memory kind, a GDDR channel, an Ethernet port, a command queue.

use super::{Figure, LABEL, Value};
use crate::{Arch, MemoryKind};
use std::borrow::Cow;

named! {
    /// What the labels of a figure stand for, by the name of the label in metrics.
    pub enum Dimension {
        /// Kinds of device memory, in the order of [`MemoryKind::ALL`].
        MemoryKind = "kind",
        GddrChannel = "channel",
        EthernetPort = "port",
        CommandQueue = "queue",
        /// Groups of L2CPU cores.
        L2Cpu = "l2cpu",
        Fan = "fan",
    }
}

impl Dimension {
    /// How many labels there are at the most.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub const fn len(self) -> usize {
        match self {
            Dimension::MemoryKind => MemoryKind::ALL.len(),
            Dimension::GddrChannel => 8,
            Dimension::EthernetPort => 16,
            Dimension::CommandQueue => 8,
            Dimension::L2Cpu | Dimension::Fan => 4,
        }
    }

    /// How many a chip of this generation has.
    pub const fn of_chip(self, arch: Arch) -> usize {
        match (self, arch) {
            (Dimension::GddrChannel, Arch::Wormhole) => 6,
            (Dimension::EthernetPort, Arch::Blackhole) => 14,
            _ => self.len(),
        }
    }

    /// The label at a place.
    pub fn label(self, place: usize) -> Cow<'static, str> {
        match self {
            Dimension::MemoryKind => MemoryKind::ALL.get(place).map_or("", |kind| kind.name()).into(),
            _ => place.to_string().into(),
        }
    }

    /// The place of a label.
    pub fn place(self, label: &str) -> Option<usize> {
        (0..self.len()).find(|place| self.label(*place) == label)
    }
}

/// A figure with one of its labels: what a CSV field, a chart or a line of metrics is about.
#[derive(Debug, PartialEq, Eq)]
pub struct Field<S: 'static> {
    /// The figure.
    pub figure: &'static Figure<S>,
    /// The place of the label; 0 where the figure has none.
    pub label: usize,
}

impl<S> Clone for Field<S> {
    fn clone(&self) -> Field<S> {
        *self
    }
}

impl<S> Copy for Field<S> {}

impl<S> Field<S> {
    /// `power_watts`; with a memory kind `dram_peak_bytes`; with another label `gddr_temp_celsius.3`.
    pub fn name(&self) -> Cow<'static, str> {
        let name = self.figure.name;
        match self.figure.dimension {
            None => name.into(),
            Some(kinds @ Dimension::MemoryKind) => format!("{}_{name}", kinds.label(self.label)).into(),
            Some(dimension) => format!("{name}.{}", dimension.label(self.label)).into(),
        }
    }

    /// For people: `Power`, `DRAM peak`, `GDDR temperature 3`.
    pub fn title(&self) -> Cow<'static, str> {
        let title = self.figure.title;
        match self.figure.dimension {
            None => title.into(),
            Some(Dimension::MemoryKind) => format!("{} {title}", MemoryKind::ALL[self.label].title()).into(),
            Some(dimension) => format!("{title} {}", dimension.label(self.label)).into(),
        }
    }

    /// Where JSON has it inside of the subject: `power_watts`, `exact.dram.peak_bytes`, `gddr_temp_celsius.3`.
    pub fn path(&self) -> String {
        let path = self.figure.path();
        match self.figure.dimension {
            None => path,
            Some(dimension) => path.replace(LABEL, &dimension.label(self.label)),
        }
    }

    /// Its value.
    pub fn value<'a>(&self, subject: &'a S) -> Option<Value<'a>> {
        (self.figure.get)(subject, self.label)
    }

    /// Its number, in the figure's unit.
    pub fn number(&self, subject: &S) -> Option<f64> {
        self.value(subject)?.number()
    }

    /// Its limit or capacity, where that is known and above zero. Labels may share a limit.
    pub fn limit_of(&self, subject: &S) -> Option<f64> {
        let limit = self.figure.limit?;
        let label = if limit.dimension.is_some() { self.label } else { 0 };
        (limit.get)(subject, label)?.number().filter(|limit| limit.is_finite() && *limit > 0.0)
    }

    /// Its value as a part of its limit or, where there is none, of full activity.
    pub fn share(&self, subject: &S) -> Option<f64> {
        let full_scale = || self.figure.full_scale?(subject).filter(|full| *full > 0.0);
        Some(self.number(subject)? / self.limit_of(subject).or_else(full_scale)?)
    }
}

impl<S> Figure<S> {
    /// How many values it has at the most: 1 where there are no labels.
    pub fn labels(&self) -> usize {
        self.dimension.map_or(1, Dimension::len)
    }

    /// The figure with each of its labels.
    pub fn fields(&'static self) -> impl Iterator<Item = Field<S>> + Clone {
        (0..self.labels()).map(|label| Field { figure: self, label })
    }

    /// The figure itself, where it has no labels.
    pub fn field(&'static self) -> Field<S> {
        Field { figure: self, label: 0 }
    }
}

//! What `-q` says of deep reads: the raw table, and why something is missing.

use model::figure::deep::{BOARD_TEMP, DEEP_UNAVAILABLE, ETH_RETRAINED, FANS, FIRMWARE_BUILD_DATE, VREG_TEMP};
use model::figure::{Figure, Section};
use model::{Arch, Deep, Device};

/// Whether a section has nothing but what deep reads know.
pub fn is_of_deep_reads(section: Section) -> bool {
    matches!(section, Section::Gddr | Section::Ethernet | Section::Units | Section::Raw)
}

/// What a Blackhole cannot have, and need not be excused for. The reason for no read is not a figure that could be missing.
const NOT_MISSED: [&Figure<Device>; 6] =
    [&VREG_TEMP, &BOARD_TEMP, &FANS, &ETH_RETRAINED, &FIRMWARE_BUILD_DATE, &DEEP_UNAVAILABLE];

/// Columns of the terminal that notes are wrapped for.
const COLUMNS: usize = 72;

/// The table as it was read, a line per tag: number, name, word.
pub fn tags(device: &Device) -> impl Iterator<Item = String> {
    let line = |tag: &model::TelemetryTag| {
        let name = device.arch.and_then(|arch| tag.name(arch)).unwrap_or("unknown");
        format!("{:>5}  {name:<24}  {:#010x}  {:>10}", tag.tag, tag.value, tag.value)
    };
    device.deep.iter().flat_map(|deep| &deep.tags).map(line)
}

/// Why a section does not have everything.
pub struct DeepNote<'a> {
    pub device: &'a Device,
    pub section: Section,
    pub without_value: &'a [&'static Figure<Device>],
}

impl DeepNote<'_> {
    pub fn lines(&self) -> impl Iterator<Item = String> + use<> {
        wrapped(&self.text().unwrap_or_default(), COLUMNS).into_iter()
    }

    fn text(&self) -> Option<String> {
        let only_deep = is_of_deep_reads(self.section);
        let Some(deep) = &self.device.deep else {
            return only_deep.then(|| "(not read: needs --deep)".to_owned());
        };
        if let Some(why) = deep.unavailable {
            return only_deep.then(|| format!("(not read: {})", why.name()));
        }
        let is_missed = |figure: &Figure<Device>| match self.device.arch {
            Some(Arch::Blackhole) => !NOT_MISSED.contains(&figure),
            _ => figure != &DEEP_UNAVAILABLE,
        };
        let missed = self.without_value.iter().filter(|figure| is_missed(figure)).map(|figure| figure.title);
        let missed: Vec<&str> = missed.collect();
        let says_something = !missed.is_empty() && !deep.tags.is_empty();
        says_something.then(|| format!("({} has no value for: {})", self.firmware(deep), missed.join(", ")))
    }

    /// `Wormhole firmware 19.6.0.0`
    fn firmware(&self, deep: &Deep) -> String {
        let arch = match self.device.arch {
            Some(Arch::Wormhole) => "Wormhole",
            Some(Arch::Blackhole) => "Blackhole",
            None => "",
        };
        let version = deep
            .tags
            .iter()
            .find(|tag| tag.tag == 28)
            .map(|tag| tag.value.to_be_bytes().map(|byte| byte.to_string()).join("."));
        format!("{arch} firmware {}", version.unwrap_or_default()).trim().to_owned()
    }
}

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if show::text::width(line) + 1 + show::text::width(word) <= columns => {
                *line += &format!(" {word}")
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

//! tt-umd's cluster descriptor: the chips that a discovery found, how they are linked, and where they are.
//!
//! Read are `arch`, `chips` (column, row, rack, shelf), `chip_unique_ids`, `ethernet_connections`,
//! `ethernet_connections_to_remote_devices`, `chips_with_mmio`, `io_device_type`, `chip_to_bus_id`, `boards`,
//! `chip_pci_bdfs` and of `harvesting` the `eth_harvesting_mask`. Descriptors of older versions lack some of them. What else there is, is passed over.

use super::TopologyError;
use super::yaml::{self, YamlNode, YamlValue};
use std::collections::{BTreeMap, BTreeSet};

/// The descriptor as it is written, chips by their numbers in it.
#[derive(Debug, Default)]
pub(super) struct Descriptor {
    pub chips: BTreeMap<u64, DescribedChip>,
    /// Chip and channel at both ends, each link once.
    pub connections: BTreeSet<[(u64, u64); 2]>,
    /// Chip and channel of each link to a chip that is not in the descriptor.
    pub outside: Vec<(u64, u64)>,
    /// Whether there is a list of such links at all.
    pub knows_outside: bool,
}

#[derive(Debug, Default)]
pub(super) struct DescribedChip {
    /// As it is spelled: `wormhole_b0`, `Wormhole`, `blackhole`.
    pub arch: Option<String>,
    pub place: Option<ChipPosition>,
    pub unique_id: Option<u64>,
    /// Whether the host reaches it without another chip.
    pub is_local: bool,
    /// `N` of `/dev/tenstorrent/N`.
    pub ordinal: Option<u32>,
    pub bus: Option<u8>,
    pub address: Option<String>,
    pub board: Option<u64>,
    /// The Ethernet ports that are switched off, one bit each.
    pub ethernet_off: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChipPosition {
    pub column: u64,
    pub row: u64,
    pub rack: u64,
    pub shelf: u64,
}

impl Descriptor {
    fn chip(&mut self, number_of_chip: &YamlNode) -> Result<&mut DescribedChip, TopologyError> {
        Ok(self.chips.entry(number(number_of_chip)?).or_default())
    }
}

/// Reads a cluster descriptor of tt-umd.
pub(super) fn read(text: &str) -> Result<Descriptor, TopologyError> {
    let top = yaml::parse(text)?;
    let members = DescriptorMembers(map(&top)?);
    if members.get("arch").or(members.get("chips")).is_none() {
        let what = "this is no cluster descriptor: it has neither \"arch\" nor \"chips\"";
        return Err(TopologyError { line: top.line, what: what.into() });
    }
    let mut found = Descriptor::default();
    read_chips(&members, &mut found)?;
    read_local_chips(&members, &mut found)?;
    for entry in members.list("boards")? {
        let id = member_of(entry, "board_id")?.map(number).transpose()?;
        for chip in member_of(entry, "chips")?.map(list).transpose()?.unwrap_or_default() {
            found.chip(chip)?.board = id;
        }
    }
    read_connections(&members, &mut found)?;
    Ok(found)
}

/// The members of the descriptor's top-level mapping.
struct DescriptorMembers<'a>(&'a [(YamlNode, YamlNode)]);

impl<'a> DescriptorMembers<'a> {
    fn get(&self, name: &str) -> Option<&'a YamlNode> {
        self.0.iter().find(|(key, _)| scalar(key) == Some(name)).map(|(_, value)| value)
    }

    /// A member that maps chips to values; empty where it is missing.
    fn by_chip(&self, name: &str) -> Result<&'a [(YamlNode, YamlNode)], TopologyError> {
        self.get(name).map(map).transpose().map(Option::unwrap_or_default)
    }

    /// A member that is a list; empty where it is missing.
    fn list(&self, name: &str) -> Result<&'a [YamlNode], TopologyError> {
        self.get(name).map(list).transpose().map(Option::unwrap_or_default)
    }
}

/// Reads what the descriptor maps each chip to.
fn read_chips(members: &DescriptorMembers, found: &mut Descriptor) -> Result<(), TopologyError> {
    for (chip, arch) in members.by_chip("arch")? {
        found.chip(chip)?.arch = Some(word(arch)?);
    }
    for (chip, at) in members.by_chip("chips")? {
        found.chip(chip)?.place = Some(place(at)?);
    }
    for (chip, id) in members.by_chip("chip_unique_ids")? {
        found.chip(chip)?.unique_id = Some(number(id)?);
    }
    for (chip, bus) in members.by_chip("chip_to_bus_id")? {
        found.chip(chip)?.bus = u8::try_from(number(bus)?).ok();
    }
    for (chip, address) in members.by_chip("chip_pci_bdfs")? {
        found.chip(chip)?.address = Some(word(address)?);
    }
    for (chip, masks) in members.by_chip("harvesting")? {
        // What else is there is not needed, and may be written in any way.
        let YamlValue::Map(masks) = &masks.value else { continue };
        let mask = masks.iter().find(|(key, _)| scalar(key) == Some("eth_harvesting_mask"));
        if let Some(mask) = mask.and_then(|(_, mask)| number(mask).ok()) {
            found.chip(chip)?.ethernet_off = Some(mask);
        }
    }
    Ok(())
}

/// Reads which chips the host reaches without another chip.
fn read_local_chips(members: &DescriptorMembers, found: &mut Descriptor) -> Result<(), TopologyError> {
    // Over JTAG the numbers are of probes, not of devices.
    let kind = members.get("io_device_type").and_then(scalar);
    let over_pcie = kind.is_none_or(|kind| kind.eq_ignore_ascii_case("pcie"));
    for entry in members.list("chips_with_mmio")? {
        let pairs = match &entry.value {
            YamlValue::Map(pairs) => pairs.iter().map(|(chip, n)| (chip, n)).collect(),
            _ => vec![(entry, entry)],
        };
        for (chip, ordinal) in pairs {
            let (chip, ordinal) = (found.chip(chip)?, number(ordinal)?);
            chip.is_local = true;
            chip.ordinal = u32::try_from(ordinal).ok().filter(|_| over_pcie);
        }
    }
    Ok(())
}

/// Reads the Ethernet links, those to other hosts included.
fn read_connections(members: &DescriptorMembers, found: &mut Descriptor) -> Result<(), TopologyError> {
    for entry in members.list("ethernet_connections")? {
        let (Some(one), Some(other)) = (list(entry)?.first(), list(entry)?.get(1)) else {
            return Err(TopologyError { line: entry.line, what: "a connection has two ends".into() });
        };
        let mut ends = [end(one)?, end(other)?];
        ends.sort_unstable();
        found.connections.insert(ends);
    }
    let outside = "ethernet_connections_to_remote_devices";
    found.knows_outside = members.get(outside).is_some();
    for entry in members.list(outside)? {
        if let Some(inner) = list(entry)?.first() {
            found.outside.push(end(inner)?);
        }
    }
    Ok(())
}

fn expected(node: &YamlNode, what: &str) -> TopologyError {
    let found = match &node.value {
        YamlValue::Scalar(text) if text.is_empty() => "nothing".into(),
        YamlValue::Scalar(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
        YamlValue::List(_) => "a list".into(),
        YamlValue::Map(_) => "a mapping".into(),
    };
    TopologyError { line: node.line, what: format!("{what} is expected here, not {found}") }
}

fn scalar(node: &YamlNode) -> Option<&str> {
    match &node.value {
        YamlValue::Scalar(text) => Some(text),
        _ => None,
    }
}

fn word(node: &YamlNode) -> Result<String, TopologyError> {
    scalar(node).filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| expected(node, "a word"))
}

fn number(node: &YamlNode) -> Result<u64, TopologyError> {
    let parse = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    scalar(node).and_then(parse).ok_or_else(|| expected(node, "a whole number"))
}

/// An empty value is an empty collection.
fn map(node: &YamlNode) -> Result<&[(YamlNode, YamlNode)], TopologyError> {
    match &node.value {
        YamlValue::Map(members) => Ok(members),
        YamlValue::Scalar(text) if text.is_empty() => Ok(&[]),
        _ => Err(expected(node, "a mapping")),
    }
}

fn list(node: &YamlNode) -> Result<&[YamlNode], TopologyError> {
    match &node.value {
        YamlValue::List(items) => Ok(items),
        YamlValue::Scalar(text) if text.is_empty() => Ok(&[]),
        _ => Err(expected(node, "a list")),
    }
}

/// A member of one of the mappings in a list: boards are written so.
fn member_of<'a>(node: &'a YamlNode, name: &str) -> Result<Option<&'a YamlNode>, TopologyError> {
    for entry in list(node)? {
        if let Some((_, value)) = map(entry)?.iter().find(|(key, _)| scalar(key) == Some(name)) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Chip and channel.
fn end(node: &YamlNode) -> Result<(u64, u64), TopologyError> {
    let member = |name: &str| {
        let found = map(node)?.iter().find(|(key, _)| scalar(key) == Some(name));
        let lacking = || TopologyError { line: node.line, what: format!("an end of a link lacks {name:?}") };
        number(found.map(|(_, value)| value).ok_or_else(lacking)?)
    };
    Ok((member("chip")?, member("chan")?))
}

fn place(node: &YamlNode) -> Result<ChipPosition, TopologyError> {
    let [column, row, rack, shelf] = list(node)? else {
        return Err(expected(node, "a list of column, row, rack and shelf"));
    };
    Ok(ChipPosition { column: number(column)?, row: number(row)?, rack: number(rack)?, shelf: number(shelf)? })
}

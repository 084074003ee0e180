//! What a machine must have: `p150x4`, as people and the simulator write it.

use model::text::did_you_mean;
use model::{Device, State};
use std::fmt;
use std::str::FromStr;

/// At least so many cards of a kind, or devices of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Required {
    /// A board as the driver names it, without the letter of the variant, or with it. Any where it is absent.
    board: Option<String>,
    count: usize,
}

/// The boards that can be required. A name without its last letter means all variants.
const BOARDS: [&str; 14] = [
    "n150",
    "n300",
    "p100",
    "p100a",
    "p150",
    "p150a",
    "p150b",
    "p150c",
    "p300",
    "p300a",
    "p300b",
    "p300c",
    "galaxy-wormhole",
    "galaxy-blackhole",
];

/// How the simulator calls a whole Galaxy, and what its 32 chips are called.
const GALAXIES: [(&str, &str); 2] = [("galaxy-wh", "galaxy-wormhole"), ("galaxy-bh", "galaxy-blackhole")];

impl FromStr for Required {
    type Err = String;

    fn from_str(text: &str) -> Result<Required, String> {
        let count = |digits: &str| match digits.parse() {
            Ok(count @ 1..) => Ok(count),
            _ => Err(format!("{digits:?} is not a count: expected a number from 1")),
        };
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Required { board: None, count: count(text)? });
        }
        let is_count = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
        let (name, number) = match text.rsplit_once('x').filter(|(_, rest)| is_count(rest)) {
            Some((name, digits)) => (name, Some(count(digits)?)),
            None => (text, None),
        };
        if let Some((_, board)) = GALAXIES.iter().find(|(short, _)| *short == name) {
            return Ok(Required { board: Some((*board).into()), count: number.unwrap_or(1) * 32 });
        }
        if !BOARDS.contains(&name) {
            let near = did_you_mean(name, BOARDS.into_iter().chain(GALAXIES.map(|(short, _)| short)));
            return Err(format!(
                "there is no board {name:?}: {near}expected BOARD, BOARDxCOUNT or COUNT, as in p150x4; boards: {}",
                BOARDS.join(", ")
            ));
        }
        Ok(Required { board: Some(name.into()), count: number.unwrap_or(1) })
    }
}

impl Required {
    /// How many of them are there. A card with two chips counts when both are there.
    pub fn found(&self, devices: &[Device]) -> usize {
        let is_there = |device: &&Device| !matches!(device.state, State::Lost | State::NoDriver | State::Remote);
        let chips = devices.iter().filter(is_there).filter(|device| self.is_met_by(device)).count();
        let per_card = if self.board.as_deref().is_some_and(|board| board.starts_with("p300")) { 2 } else { 1 };
        chips / per_card
    }

    /// What is wrong, where there are too few.
    pub fn missing(&self, devices: &[Device]) -> Option<String> {
        let found = self.found(devices);
        let what = self.board.as_deref().unwrap_or("devices");
        (found < self.count).then(|| format!("{found} of {} {what} found", self.count))
    }

    fn is_met_by(&self, device: &Device) -> bool {
        let Some(wanted) = &self.board else { return true };
        let variant = device.board.as_deref().and_then(|board| board.strip_prefix(wanted.as_str()));
        variant.is_some_and(|variant| variant.is_empty() || variant.len() == 1)
    }
}

impl fmt::Display for Required {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.board {
            Some(board) => write!(f, "{board}x{}", self.count),
            None => write!(f, "{}", self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DeviceId;

    fn devices(boards: &[&str]) -> Vec<Device> {
        let device = |(n, board): (usize, &&str)| Device {
            board: Some((**board).into()),
            ..Device::new(DeviceId::Local(n as u32))
        };
        boards.iter().enumerate().map(device).collect()
    }

    #[test]
    fn a_requirement_is_a_board_a_count_or_both() {
        for (text, written) in [
            ("p150x4", "p150x4"),
            ("p150a", "p150ax1"),
            ("4", "4"),
            ("n300x12", "n300x12"),
            ("galaxy-bh", "galaxy-blackholex32"),
            ("galaxy-wormholex8", "galaxy-wormholex8"),
        ] {
            assert_eq!(text.parse::<Required>().unwrap().to_string(), written, "{text}");
        }
        for (text, part) in [
            ("", "there is no board \"\""),
            ("0", "expected a number from 1"),
            ("p150x0", "expected a number from 1"),
            ("4x", "expected a number from 1"),
            ("p15Ox4", "did you mean p150? "),
            ("e75x2", "there is no board \"e75\""),
            ("p150x", "expected a number from 1"),
        ] {
            let error = text.parse::<Required>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn cards_are_counted_by_their_name_with_or_without_the_variant() {
        let machine = devices(&["p150a", "p150b", "p300a", "p300a", "p300c"]);
        let missing = |text: &str| text.parse::<Required>().unwrap().missing(&machine);
        assert_eq!([missing("p150x2"), missing("p150a"), missing("5"), missing("p300")], [None, None, None, None]);
        assert_eq!(missing("p150ax2").unwrap(), "1 of 2 p150a found");
        assert_eq!(missing("p300x2").unwrap(), "1 of 2 p300 found", "three of its four chips");
        assert_eq!(missing("n300x2").unwrap(), "0 of 2 n300 found");
        assert_eq!(missing("6").unwrap(), "5 of 6 devices found");
    }
}

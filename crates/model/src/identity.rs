//! Which chip a tt-metal memory region belongs to.
//!
//! The region's name carries the number that tt-umd gives the chip. Depending on the board and on whether an Ethernet
//! link is trained, that is the ASIC id, the board id, or a mix of the board id and the chip's place on the board.

use crate::{Arch, Board, Device, DeviceId};

/// What a region's number says about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChipMatch {
    /// It is this chip.
    Chip,
    /// It is the chip that is reached through this one (n300 R).
    Remote,
    /// It is one of the chips of this board; the number alone does not say which.
    OneOfBoard,
}

/// Compares a region's number with all the numbers that the device may have been given.
pub fn chip_match(device: &Device, number: u64) -> Option<ChipMatch> {
    ChipNumbers::of(device).compare(number)
}

/// What the numbers of a device are made of. To compare many, they are decoded once.
#[derive(Debug, Clone)]
pub struct ChipNumbers {
    id: DeviceId,
    asic: Option<u64>,
    serial: Option<u64>,
    board: Option<Board>,
    arch: Option<Arch>,
}

impl ChipNumbers {
    /// Those of a device.
    pub fn of(device: &Device) -> ChipNumbers {
        ChipNumbers {
            id: device.id.clone(),
            asic: device.asic_number(),
            serial: device.serial_number(),
            board: device.board.as_deref().and_then(Board::named),
            arch: device.arch,
        }
    }

    /// The same as [`chip_match`].
    fn compare(&self, number: u64) -> Option<ChipMatch> {
        if self.asic == Some(number) {
            return Some(ChipMatch::Chip);
        }
        compare_serial(self.serial?, self.board, self.arch, number)
    }
}

fn compare_serial(serial: u64, board: Option<Board>, arch: Option<Arch>, number: u64) -> Option<ChipMatch> {
    use ChipMatch::{Chip, OneOfBoard, Remote};
    match arch {
        Some(Arch::Wormhole) if board == Some(Board::GalaxyWormhole) => {
            let (chip, tray) = (number >> 56, number & TRAY);
            ((1..=8).contains(&chip) && tray == serial & TRAY).then_some(OneOfBoard)
        }
        Some(Arch::Wormhole) => {
            let (place, low) = (number >> 32, number & 0xFFFF_FFFF);
            match place {
                _ if number == serial => Some(Chip),
                _ if low != mangled(serial) => None,
                2 => Some(Chip),
                3 if board == Some(Board::N300) => Some(Remote),
                // Seen with 2 and 3 only; on a board with one chip any small place can mean no other.
                0..16 if board == Some(Board::N150) => Some(Chip),
                _ => None,
            }
        }
        Some(Arch::Blackhole) => {
            // Shifted by five since September 2025, by one before; the low bits are the chip's place on the board.
            let place =
                [(5, 31), (1, 1)].iter().find_map(|(shift, low)| (number >> shift == serial).then_some(number & low));
            match (place.or((number == serial).then_some(0))?, board) {
                (0 | 1, Some(Board::P300)) => Some(OneOfBoard),
                (0 | 1, _) => Some(Chip),
                _ => None,
            }
        }
        None => None,
    }
}

/// How a chip's number is written everywhere: as serials and ASIC ids are.
pub fn chip_text(number: u64) -> String {
    format!("{number:016X}")
}

/// A chip's number, as [`chip_text`] writes it.
pub fn chip_of_text(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16)
}

/// The chip that a number surely means, if the number alone says so and just one chip can be it.
pub fn chip_with_number(devices: &[Device], number: u64) -> Option<DeviceId> {
    chip_of_numbers(devices.iter().map(ChipNumbers::of), number)
}

/// The same where the numbers of the devices are decoded already.
pub fn chip_of_numbers(
    numbers: impl IntoIterator<Item = impl std::borrow::Borrow<ChipNumbers>>,
    number: u64,
) -> Option<DeviceId> {
    // A chip without PCIe has the serial of its gateway, and is met through it.
    let sure = |device: &ChipNumbers| match (device.compare(number)?, &device.id) {
        (ChipMatch::Chip, DeviceId::Local(n)) => Some(DeviceId::Local(*n)),
        (ChipMatch::Remote, DeviceId::Local(n)) => Some(DeviceId::Remote(*n)),
        _ => None,
    };
    let mut all = numbers.into_iter().filter_map(|device| sure(device.borrow()));
    all.next().filter(|_| all.next().is_none())
}

const TRAY: u64 = (1 << 56) - 1;

/// The half of the board id that Wormhole's Ethernet firmware keeps.
fn mangled(serial: u64) -> u64 {
    ((serial >> 4) & 0xF000_0000) | (serial & 0x0FFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceId;

    fn device(arch: Arch, board: &str, serial: &str, asic: &str) -> Device {
        let mut device = Device::new(DeviceId::Local(0));
        device.arch = Some(arch);
        device.board = Some(board.into());
        device.serial = Some(serial.into());
        device.asic_id = Some(asic.into());
        device
    }

    #[test]
    fn an_n300_has_two_numbers_made_from_its_serial() {
        let n300 = device(Arch::Wormhole, "n300", "010001451170C0C4", "1A2B3C4D5E6F7081");
        assert_eq!(chip_match(&n300, 9_956_278_468), Some(ChipMatch::Chip));
        assert_eq!(chip_match(&n300, 14_251_245_764), Some(ChipMatch::Remote));
        assert_eq!(chip_match(&n300, 18_546_213_060), None);
        assert_eq!(chip_match(&n300, 0x0100_0145_1170_C0C4), Some(ChipMatch::Chip), "no link is trained");
        assert_eq!(chip_match(&n300, 0), None);
    }

    #[test]
    fn a_lone_blackhole_is_its_asic_and_a_linked_one_its_board() {
        let p150 = device(Arch::Blackhole, "p150b", "000004123191110E", "F5DDD9F78D7E0BEE");
        assert_eq!(chip_match(&p150, 0xF5DD_D9F7_8D7E_0BEE), Some(ChipMatch::Chip));
        assert_eq!(chip_match(&p150, 143_238_000_419_264), Some(ChipMatch::Chip));
        assert_eq!(chip_match(&p150, 0x0000_0412_3191_110E * 2 + 1), Some(ChipMatch::Chip));
        assert_eq!(chip_match(&p150, 143_238_000_419_264 + 2), None);
        assert_eq!(chip_match(&p150, 143_238_000_419_264 + 32), None);
    }

    #[test]
    fn the_chips_of_a_p300_share_their_numbers() {
        let p300 = device(Arch::Blackhole, "p300a", "000004513190F004", "1");
        assert_eq!(chip_match(&p300, 0x0000_0451_3190_F004 << 5), Some(ChipMatch::OneOfBoard));
        assert_eq!(chip_match(&p300, (0x0000_0451_3190_F004 << 5) | 1), Some(ChipMatch::OneOfBoard));
        assert_eq!(chip_match(&p300, 1), Some(ChipMatch::Chip));
    }

    #[test]
    fn a_wormhole_galaxy_chip_is_known_by_its_tray() {
        let chip = device(Arch::Wormhole, "galaxy-wormhole", "0100035100000000", "77");
        assert_eq!(chip_match(&chip, (8 << 56) | 0x0000_0351_0000_0000), Some(ChipMatch::OneOfBoard));
        assert_eq!(chip_match(&chip, (9 << 56) | 0x0000_0351_0000_0000), None);
    }

    #[test]
    fn an_n150_in_a_mesh_may_have_any_small_place() {
        let n150 = device(Arch::Wormhole, "n150", "010001861180B479", "1");
        assert_eq!(
            chip_match(&n150, (2 << 32) | 0x6180_B479),
            Some(ChipMatch::Chip),
            "{:x}",
            mangled(0x0100_0186_1180_B479)
        );
        assert_eq!(chip_match(&n150, (3 << 32) | 0x6180_B479), Some(ChipMatch::Chip));
        assert_eq!(chip_match(&n150, (16 << 32) | 0x6180_B479), None);
    }

    #[test]
    fn a_hung_chip_matches_nothing() {
        let dead = device(Arch::Blackhole, "unknown", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFF");
        for number in [0, 1, u64::MAX, u64::MAX << 5, u64::MAX << 1] {
            assert_eq!(chip_match(&dead, number), None, "{number}");
        }
    }
}

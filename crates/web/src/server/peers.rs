//! Connections by address, and wrong tokens by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct Peers(Mutex<PeerCounts>);

#[derive(Debug, Default)]
struct PeerCounts {
    total: usize,
    open: HashMap<IpAddr, usize>,
    guesses: HashMap<IpAddr, Guesses>,
}

#[derive(Debug, Clone, Copy)]
struct Guesses {
    wrong: u32,
    last: Instant,
}

/// One connection. Its place is free again when this is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    peers: Arc<Peers>,
    peer: IpAddr,
}

/// Connections in all,
pub const MOST: usize = 512;
/// and from one address.
pub const MOST_OF_ONE: usize = 256;
/// Wrong tokens from one address before it has to wait,
const MOST_WRONG: u32 = 5;
/// and for how long.
const WAIT: Duration = Duration::from_secs(30);
/// Addresses that are remembered for that.
const MOST_GUESSERS: usize = 4096;

impl Peers {
    /// A place for one more connection, if there is one.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        let peer = network(peer);
        let mut known = self.lock();
        let of_one = known.open.get(&peer).copied().unwrap_or(0);
        if known.total >= MOST || of_one >= MOST_OF_ONE {
            return None;
        }
        known.total += 1;
        known.open.insert(peer, of_one + 1);
        Some(ConnectionSlot { peers: self.clone(), peer })
    }

    /// How long an address that has guessed too often has to wait.
    pub fn has_to_wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let known = self.lock();
        let guesses = known.guesses.get(&network(peer)).filter(|guesses| guesses.wrong >= MOST_WRONG)?;
        (guesses.last + WAIT).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    pub fn has_guessed(&self, peer: IpAddr, now: Instant) {
        let mut known = self.lock();
        let is_old = |guesses: &Guesses| now.duration_since(guesses.last) >= WAIT;
        if known.guesses.len() >= MOST_GUESSERS {
            known.guesses.retain(|_, guesses| !is_old(guesses));
        }
        if known.guesses.len() >= MOST_GUESSERS {
            // A client with that many addresses replaces the oldest entry.
            let oldest = known.guesses.iter().min_by_key(|(_, guesses)| guesses.last).map(|(peer, _)| *peer);
            oldest.and_then(|peer| known.guesses.remove(&peer));
        }
        let guesses = known.guesses.entry(network(peer)).or_insert(Guesses { wrong: 0, last: now });
        let before = if is_old(guesses) { 0 } else { guesses.wrong };
        *guesses = Guesses { wrong: before + 1, last: now };
    }

    fn lock(&self) -> MutexGuard<'_, PeerCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut known = self.peers.lock();
        known.total -= 1;
        let left = known.open.get(&self.peer).map_or(0, |open| open - 1);
        match left {
            0 => known.open.remove(&self.peer),
            left => known.open.insert(self.peer, left),
        };
    }
}

/// An IPv6 client has a whole network of addresses: the first 64 bits identify it.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_counted_for_each_address_and_in_all() {
        let peers = Arc::new(Peers::default());
        let one: Vec<ConnectionSlot> = (0..MOST_OF_ONE).map(|_| peers.admit(address("10.0.0.1")).unwrap()).collect();
        assert!(peers.admit(address("::ffff:10.0.0.1")).is_none(), "the same, written otherwise");
        let other: Vec<ConnectionSlot> =
            (0..MOST - MOST_OF_ONE).map(|_| peers.admit(address("10.0.0.2")).unwrap()).collect();
        assert!(peers.admit(address("10.0.0.3")).is_none());
        drop(one);
        assert!(peers.admit(address("10.0.0.1")).is_some());
        drop(other);
        let known = peers.lock();
        assert_eq!((known.total, known.open.len()), (0, 0));
    }

    #[test]
    fn whoever_guesses_has_to_wait_and_nobody_else() {
        let (peers, now) = (Peers::default(), Instant::now());
        for _ in 0..4 {
            peers.has_guessed(address("fd00::1"), now);
        }
        assert_eq!(peers.has_to_wait(address("fd00::1"), now), None);
        peers.has_guessed(address("fd00::2"), now);
        assert_eq!(peers.has_to_wait(address("fd00::3"), now), Some(WAIT), "a neighbour in the same network");
        assert_eq!(peers.has_to_wait(address("fd00:0:0:1::1"), now), None);
        assert_eq!(peers.has_to_wait(address("fd00::1"), now + WAIT), None);
        peers.has_guessed(address("fd00::1"), now + WAIT);
        assert_eq!(peers.has_to_wait(address("fd00::1"), now + WAIT), None, "the count starts over");
    }

    #[test]
    #[ignore = "long"]
    fn however_many_guess_few_are_remembered() {
        let (peers, now) = (Peers::default(), Instant::now());
        for number in 0..20_000u32 {
            peers.has_guessed(IpAddr::V4(number.into()), now);
        }
        assert_eq!(peers.lock().guesses.len(), MOST_GUESSERS);
    }
}

//! What clients of the proof of concept have reported, process by process. No socket, no clock, no lock.
//!
//! A buffer belongs to its process: it lives until it is freed or the process dies, whatever becomes of the connection.

use super::buffer_table::{BufferKey, Class, ReportedBuffers};
use super::frame::{Operation, PocRequest};
use crate::book::MemoryKind;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

/// Allocated bytes by [`MemoryKind`].
pub type Kinds = [u64; 6];

/// Sums that no number of clients can make overflow, whatever they claim: what one adds can always be taken off again.
pub type Sums = [u128; 6];

/// The accounts of all processes. `P` identifies a process among all others, exited ones included.
#[derive(Debug)]
pub struct Accounts<P> {
    /// Shared with whoever makes a long answer of one. A change then copies it, without most of its buffers.
    processes: BTreeMap<P, Arc<ClientAccount>>,
    totals: BTreeMap<i32, Sums>,
    /// How many live buffers the processes of each user have.
    users: BTreeMap<u32, usize>,
    most: MostBuffers,
}

/// How many live buffers are kept. What is beyond them is counted, and not in the figures.
#[derive(Debug, Clone, Copy)]
pub struct MostBuffers {
    /// Of one process.
    pub process: usize,
    /// Of all processes of one user.
    pub user: usize,
}

/// What one process has reported.
#[derive(Debug, Default, Clone)]
pub struct ClientAccount {
    buffers: ReportedBuffers,
    totals: BTreeMap<i32, Sums>,
    /// How many buffers live on each device.
    devices: BTreeMap<i32, usize>,
    user: u32,
    /// How many buffers were not entered because there were too many.
    pub refused: u64,
}

/// No machine has so many. Who claims that many makes them up, and each costs time and room.
const MOST_DEVICES: usize = 256;

/// A live buffer that a client reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedBuffer {
    /// Size in bytes.
    pub bytes: u64,
    /// What the buffer is used for.
    pub kind: MemoryKind,
    /// When it was allocated, ns since 1970; zero when the client did not say.
    pub time: u64,
    /// Allocated so often and not yet freed: a cached program's buffers are.
    pub(super) references: u32,
}

/// Why a message changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountRefusal {
    /// The process has as many buffers as it may.
    #[error("the process has {0} live buffers, which is as many as this service keeps of one")]
    TooMany(usize),
    /// The processes of its user have as many as they may.
    #[error("the processes of its user have {0} live buffers, which is as many as this service keeps of one user")]
    TooManyOfUser(usize),
    /// It has buffers on more devices than there can be.
    #[error("the process has buffers on {MOST_DEVICES} devices already, and claims some on device {0} too")]
    TooManyDevices(i32),
    /// It frees what it does not have.
    #[error("buffer {0:#x} is not allocated")]
    Unknown(u64),
    /// Without the device it is unknown which of several buffers is freed.
    #[error("buffer {0:#x} is allocated on several devices, and not on the one that was named")]
    Ambiguous(u64),
}

impl<P: Ord + Copy> Accounts<P> {
    /// No accounts yet, and so many buffers at the most.
    pub fn new(most: MostBuffers) -> Accounts<P> {
        Accounts { processes: BTreeMap::new(), totals: BTreeMap::new(), users: BTreeMap::new(), most }
    }

    /// Enters what a process of a user reports. Queries change nothing.
    pub fn apply(&mut self, process: P, user: u32, request: &PocRequest) -> Result<(), AccountRefusal> {
        let PocRequest { device, bytes, buffer, time, .. } = *request;
        match request.operation {
            Operation::Allocate(kind) => {
                let new = || Arc::new(ClientAccount { user, ..ClientAccount::default() });
                let account = Arc::make_mut(self.processes.entry(process).or_insert_with(new));
                let key = (buffer, Class::of(Some(kind)), device);
                let refer = |known: &mut ReportedBuffer| known.references = known.references.saturating_add(1);
                if account.buffers.change(&key, refer).is_some() {
                    return Ok(());
                }
                let of_user = self.users.entry(account.user).or_default();
                let refusal = if account.buffers.len() >= self.most.process {
                    AccountRefusal::TooMany(account.buffers.len())
                } else if *of_user >= self.most.user {
                    AccountRefusal::TooManyOfUser(*of_user)
                } else if account.devices.len() >= MOST_DEVICES && !account.devices.contains_key(&device) {
                    AccountRefusal::TooManyDevices(device)
                } else {
                    *of_user += 1;
                    *account.devices.entry(device).or_default() += 1;
                    account.buffers.insert(key, ReportedBuffer { bytes, kind, time, references: 1 });
                    add(&mut account.totals, device, kind, bytes);
                    add(&mut self.totals, device, kind, bytes);
                    return Ok(());
                };
                account.refused += u64::from(!matches!(refusal, AccountRefusal::TooManyDevices(_)));
                return Err(refusal);
            }
            Operation::Free(kind) => {
                let account = self.processes.get_mut(&process).ok_or(AccountRefusal::Unknown(buffer))?;
                let key = account.find(device, buffer, Class::of(kind))?;
                let account = Arc::make_mut(account);
                let release = |known: &mut ReportedBuffer| {
                    known.references -= 1;
                    known.references
                };
                if account.buffers.change(&key, release) == Some(0) {
                    if let Some(ReportedBuffer { bytes, kind, .. }) = account.buffers.remove(&key) {
                        let (.., device) = key;
                        account.leave(device);
                        leave_user(&mut self.users, account.user, 1);
                        subtract(&mut account.totals, device, kind, bytes.into());
                        subtract(&mut self.totals, device, kind, bytes.into());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A process is dead: its bytes leave the totals, and its account is handed out.
    pub fn end(&mut self, process: P) -> Option<Arc<ClientAccount>> {
        let account = self.processes.remove(&process)?;
        leave_user(&mut self.users, account.user, account.buffers.len());
        for (device, kinds) in &account.totals {
            for (kind, bytes) in MemoryKind::ALL.into_iter().zip(kinds) {
                subtract(&mut self.totals, *device, kind, *bytes);
            }
        }
        Some(account)
    }

    /// What all of them have on a device.
    pub fn total(&self, device: i32) -> Kinds {
        self.totals.get(&device).map(kinds_of).unwrap_or_default()
    }

    /// The same, where no sum is too large.
    pub fn sum(&self, device: i32) -> Sums {
        self.totals.get(&device).copied().unwrap_or_default()
    }

    /// What one process has reported.
    pub fn get(&self, process: P) -> Option<&Arc<ClientAccount>> {
        self.processes.get(&process)
    }

    /// Changes how many buffers are kept. What is there stays.
    pub fn set_most(&mut self, most: MostBuffers) {
        self.most = most;
    }

    /// The processes and their accounts.
    pub fn iter(&self) -> impl Iterator<Item = (&P, &Arc<ClientAccount>)> {
        self.processes.iter()
    }
}

impl ClientAccount {
    /// What the process has, by device.
    pub fn totals(&self) -> impl Iterator<Item = (i32, Kinds)> {
        self.totals.iter().map(|(device, kinds)| (*device, kinds_of(kinds)))
    }

    /// What it has on one device. `None` when that is nothing.
    pub fn total(&self, device: i32) -> Option<Kinds> {
        self.totals.get(&device).map(kinds_of)
    }

    /// The same, where no sum is too large.
    pub fn sum(&self, device: i32) -> Option<Sums> {
        self.totals.get(&device).copied()
    }

    /// Its live buffers: device, id and the rest, by id.
    pub fn buffers(&self) -> impl Iterator<Item = (i32, u64, ReportedBuffer)> {
        self.buffers.iter().map(|((id, _, device), buffer)| (*device, *id, *buffer))
    }

    /// How many those are.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }

    /// How many of them are on a device.
    pub fn buffers_on(&self, device: i32) -> usize {
        self.devices.get(&device).copied().unwrap_or(0)
    }

    fn leave(&mut self, device: i32) {
        if let Entry::Occupied(mut buffers) = self.devices.entry(device) {
            match *buffers.get() {
                0 | 1 => drop(buffers.remove()),
                _ => *buffers.get_mut() -= 1,
            }
        }
    }

    /// The buffer that is meant. One of the clients frees with device 0 whatever the device was.
    fn find(&self, device: i32, buffer: u64, class: Class) -> Result<BufferKey, AccountRefusal> {
        let named = (buffer, class, device);
        if self.buffers.contains(&named) {
            return Ok(named);
        }
        let mut others = self.buffers.on_any_device(buffer, class);
        match (others.next(), others.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(AccountRefusal::Unknown(buffer)),
            (Some(_), Some(_)) => Err(AccountRefusal::Ambiguous(buffer)),
        }
    }
}

impl Class {
    fn of(kind: Option<MemoryKind>) -> Class {
        match kind {
            Some(MemoryKind::Cb) => Class::Circular,
            Some(MemoryKind::Kernel) => Class::Kernel,
            _ => Class::Buffer,
        }
    }
}

fn leave_user(users: &mut BTreeMap<u32, usize>, user: u32, buffers: usize) {
    if let Some(left) = users.get_mut(&user) {
        *left -= buffers;
        if *left == 0 {
            users.remove(&user);
        }
    }
}

/// As whole bytes, for replies.
fn kinds_of(sums: &Sums) -> Kinds {
    sums.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn add(totals: &mut BTreeMap<i32, Sums>, device: i32, kind: MemoryKind, bytes: u64) {
    totals.entry(device).or_default()[kind as usize] += u128::from(bytes);
}

fn subtract(totals: &mut BTreeMap<i32, Sums>, device: i32, kind: MemoryKind, bytes: u128) {
    if let Some(kinds) = totals.get_mut(&device) {
        kinds[kind as usize] -= bytes;
        if *kinds == [0; 6] {
            totals.remove(&device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn up_to(process: usize) -> Accounts<u8> {
        Accounts::new(MostBuffers { process, user: 1000 })
    }

    fn request(operation: Operation, device: i32, buffer: u64, bytes: u64) -> PocRequest {
        PocRequest { operation, device, bytes, pid: 0, buffer, time: 0 }
    }

    fn allocate(device: i32, buffer: u64, bytes: u64) -> PocRequest {
        request(Operation::Allocate(MemoryKind::Dram), device, buffer, bytes)
    }

    fn free(device: i32, buffer: u64) -> PocRequest {
        request(Operation::Free(None), device, buffer, 0)
    }

    #[test]
    fn two_processes_with_the_same_address_have_a_buffer_each() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(0, 0x1000, 100)).unwrap();
        accounts.apply(2, 7, &allocate(0, 0x1000, 30)).unwrap();
        assert_eq!(accounts.total(0)[0], 130);
        accounts.apply(1, 7, &free(0, 0x1000)).unwrap();
        assert_eq!(accounts.total(0)[0], 30);
    }

    #[test]
    fn a_buffer_that_is_allocated_twice_counts_once_and_is_freed_twice() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(0, 7, 100)).unwrap();
        accounts.apply(1, 7, &allocate(0, 7, 100)).unwrap();
        assert_eq!(accounts.total(0)[0], 100);
        accounts.apply(1, 7, &free(0, 7)).unwrap();
        assert_eq!(accounts.total(0)[0], 100);
        accounts.apply(1, 7, &free(0, 7)).unwrap();
        assert_eq!(accounts.total(0)[0], 0);
        assert_eq!(accounts.apply(1, 7, &free(0, 7)), Err(AccountRefusal::Unknown(7)));
    }

    #[test]
    fn a_free_on_the_wrong_device_finds_the_only_buffer_that_it_can_mean() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(3, 7, 100)).unwrap();
        accounts.apply(1, 7, &free(0, 7)).unwrap();
        assert_eq!(accounts.total(3)[0], 0);
        accounts.apply(1, 7, &allocate(3, 7, 100)).unwrap();
        accounts.apply(1, 7, &allocate(4, 7, 100)).unwrap();
        assert_eq!(accounts.apply(1, 7, &free(0, 7)), Err(AccountRefusal::Ambiguous(7)));
        assert_eq!((accounts.total(3)[0], accounts.total(4)[0]), (100, 100));
    }

    #[test]
    fn circular_buffers_and_kernels_have_ids_of_their_own() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(0, 7, 1)).unwrap();
        accounts.apply(1, 7, &request(Operation::Allocate(MemoryKind::Cb), 0, 7, 20)).unwrap();
        accounts.apply(1, 7, &request(Operation::Allocate(MemoryKind::Kernel), 0, 7, 300)).unwrap();
        assert_eq!(accounts.total(0), [1, 0, 0, 0, 20, 300]);
        accounts.apply(1, 7, &request(Operation::Free(Some(MemoryKind::Cb)), 0, 7, 0)).unwrap();
        assert_eq!(accounts.total(0), [1, 0, 0, 0, 0, 300]);
    }

    #[test]
    fn exited_processes_leave_the_totals_at_once() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(0, 7, 100)).unwrap();
        accounts.apply(2, 7, &allocate(0, 8, 5)).unwrap();
        let account = accounts.end(1).unwrap();
        assert_eq!(account.totals().collect::<Vec<_>>(), [(0, [100, 0, 0, 0, 0, 0])]);
        assert_eq!(account.buffers().count(), 1);
        assert_eq!(accounts.total(0)[0], 5);
        assert!(accounts.end(1).is_none());
    }

    #[test]
    fn who_claims_too_much_leaves_no_trace_in_the_totals_of_others() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(0, 7, 100)).unwrap();
        accounts.apply(2, 7, &allocate(0, 7, u64::MAX)).unwrap();
        accounts.apply(2, 7, &allocate(0, 8, u64::MAX)).unwrap();
        assert_eq!(accounts.total(0)[0], u64::MAX);
        accounts.end(2);
        assert_eq!(accounts.total(0)[0], 100);
    }

    #[test]
    fn a_process_may_have_so_many_buffers_and_others_do_not_notice() {
        let mut accounts = up_to(2);
        accounts.apply(1, 7, &allocate(0, 1, 1)).unwrap();
        accounts.apply(1, 7, &allocate(0, 2, 1)).unwrap();
        assert_eq!(accounts.apply(1, 7, &allocate(0, 3, 1)), Err(AccountRefusal::TooMany(2)));
        accounts.apply(2, 7, &allocate(0, 3, 1)).unwrap();
        assert_eq!(accounts.total(0)[0], 3);
    }

    #[test]
    fn the_processes_of_a_user_share_a_limit_and_those_of_another_do_not_notice() {
        let mut accounts = Accounts::new(MostBuffers { process: 10, user: 3 });
        accounts.apply(1, 7, &allocate(0, 1, 1)).unwrap();
        accounts.apply(1, 7, &allocate(0, 2, 1)).unwrap();
        accounts.apply(2, 7, &allocate(0, 1, 1)).unwrap();
        assert_eq!(accounts.apply(2, 7, &allocate(0, 2, 1)), Err(AccountRefusal::TooManyOfUser(3)));
        accounts.apply(3, 8, &allocate(0, 2, 1)).unwrap();
        assert_eq!((accounts.total(0)[0], accounts.get(2).unwrap().refused), (4, 1));
        accounts.end(1);
        accounts.apply(2, 7, &free(0, 1)).unwrap();
        (1..=3).for_each(|buffer| accounts.apply(2, 7, &allocate(0, buffer, 1)).unwrap());
        accounts.end(2);
        accounts.end(3);
        assert!(accounts.users.is_empty());
    }

    #[test]
    fn buffers_that_are_gone_take_no_room() {
        let mut accounts = Accounts::new(MostBuffers { process: 100_000, user: 100_000 });
        (0..100_000).for_each(|buffer| accounts.apply(1, 7, &allocate(0, buffer, 1)).unwrap());
        (0..99_999).for_each(|buffer| accounts.apply(1, 7, &free(0, buffer)).unwrap());
        assert_eq!(accounts.get(1).unwrap().count(), 1);
        assert_eq!(accounts.total(0)[0], 1);
    }

    #[test]
    fn a_process_cannot_make_up_as_many_devices_as_it_likes() {
        let mut accounts = up_to(1000);
        (0..256).for_each(|device| accounts.apply(1, 7, &allocate(device, 7, 1)).unwrap());
        assert_eq!(accounts.apply(1, 7, &allocate(256, 7, 1)), Err(AccountRefusal::TooManyDevices(256)));
        accounts.apply(1, 7, &allocate(3, 8, 1)).unwrap();
        assert_eq!(accounts.get(1).unwrap().buffers_on(3), 2);
        accounts.apply(1, 7, &free(5, 7)).unwrap();
        accounts.apply(1, 7, &allocate(256, 7, 1)).unwrap();
        assert_eq!(accounts.get(1).unwrap().buffers_on(5), 0);
    }

    #[test]
    fn an_empty_buffer_is_found_though_its_device_holds_no_bytes() {
        let mut accounts = up_to(10);
        accounts.apply(1, 7, &allocate(3, 7, 0)).unwrap();
        accounts.apply(1, 7, &allocate(3, 8, 100)).unwrap();
        accounts.apply(1, 7, &free(3, 8)).unwrap();
        accounts.apply(1, 7, &free(0, 7)).unwrap();
        accounts.apply(1, 7, &allocate(3, 7, 100)).unwrap();
        assert_eq!(accounts.total(3)[0], 100, "it is not the empty one again");
    }

    proptest! {
        #[test]
        fn the_total_is_the_sum_of_the_accounts(
            steps in prop::collection::vec((0u8..4, 0i32..3, 0u64..6, 0u64..1 << 40, 0u8..4), 0..200),
        ) {
            let mut accounts = up_to(1000);
            for (process, device, buffer, bytes, what) in steps {
                match what {
                    0 | 1 => accounts.apply(process, 7, &allocate(device, buffer, bytes)).unwrap(),
                    2 => _ = accounts.apply(process, 7, &free(device, buffer)),
                    _ => _ = accounts.end(process),
                }
                for device in 0..3 {
                    let held = accounts.iter().flat_map(|(_, account)| account.buffers());
                    let sum: u64 = held.filter(|(of, ..)| *of == device).map(|(.., buffer)| buffer.bytes).sum();
                    assert_eq!(accounts.total(device)[0], sum);
                    for (_, account) in accounts.iter() {
                        let buffers = account.buffers().filter(|(of, ..)| *of == device).count();
                        assert_eq!(account.buffers_on(device), buffers);
                    }
                }
            }
        }
    }
}

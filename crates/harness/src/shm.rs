//! The real `tt::tt_metal::SharedMemoryStatsProvider`, the writer of `/dev/shm/tt_device_<id>_memory`.
//!
//! ```text
//! open SLOT ASIC_ID DEVICE_ID
//! alloc SLOT BYTES dram|l1|l1_small|trace|cb [CHIP]
//! free SLOT BYTES dram|l1|l1_small|trace|cb [CHIP]
//! churn SLOT COUNT                OK ns=<time of one record>; so many allocations and releases in DRAM
//! close SLOT
//! ```
//!
//! A slot is a number of the caller's choice. `CHIP` is the `DEVICE_ID` unless given, as it is
//! when tt-metal itself calls: a region is for one chip.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ledger::book::MemoryKind;
use libloading::os::unix::RTLD_LOCAL;

use crate::cpp::{Cpp, Storage, cpp_functions};
use crate::script::{self, number};

/// The library and the providers that are open, by slot.
pub struct Providers {
    functions: ProviderFunctions,
    open: BTreeMap<u32, Provider>,
}

impl Providers {
    pub fn load(library: &Path) -> Result<Providers> {
        Ok(Providers { functions: ProviderFunctions::find(Cpp::load(library, RTLD_LOCAL)?)?, open: BTreeMap::new() })
    }

    pub fn answer(&mut self, words: &[&str]) -> Result<String> {
        match *words {
            ["open", slot, asic, device] => {
                let slot = number("SLOT", slot)?;
                let (asic, device) = (number("ASIC_ID", asic)?, number("DEVICE_ID", device)?);
                if self.open.contains_key(&slot) {
                    bail!("slot {slot} is open already");
                }
                self.open.insert(slot, Provider::open(self.functions, asic, device));
            }
            ["alloc" | "free", slot, bytes, kind, ref chip @ ..] if chip.len() <= 1 => {
                let event = if words[0] == "alloc" { self.functions.allocation } else { self.functions.deallocation };
                let (bytes, kind) = (number("BYTES", bytes)?, script::kind(kind)?);
                let provider = self.provider(slot)?;
                let chip = chip.first().map_or(Ok(provider.device), |chip| number("CHIP", chip))?;
                provider.record(event, bytes, kind, chip);
            }
            ["churn", slot, count] => return self.churn(slot, number("COUNT", count)?),
            ["close", slot] => {
                let slot: u32 = number("SLOT", slot)?;
                self.open.remove(&slot).with_context(|| format!("slot {slot} is not open"))?;
            }
            _ => bail!("unknown command {:?}", words.join(" ")),
        }
        Ok(String::new())
    }

    fn churn(&mut self, slot: &str, count: u32) -> Result<String> {
        if count == 0 {
            bail!("COUNT is zero");
        }
        let ProviderFunctions { allocation, deallocation, .. } = self.functions;
        let provider = self.provider(slot)?;
        let start = Instant::now();
        for _ in 0..count {
            provider.record(allocation, 4096, MemoryKind::Dram, provider.device);
            provider.record(deallocation, 4096, MemoryKind::Dram, provider.device);
        }
        Ok(format!("ns={}", start.elapsed().as_nanos() / u128::from(count) / 2))
    }

    fn provider(&mut self, slot: &str) -> Result<&mut Provider> {
        let slot: u32 = number("SLOT", slot)?;
        self.open.get_mut(&slot).with_context(|| format!("slot {slot} is not open"))
    }
}

type Record = unsafe extern "C-unwind" fn(this: *mut c_void, pid: i32, bytes: u64, kind: u8, chip: u32);

cpp_functions! {
    ProviderFunctions {
        construct(this: *mut c_void, asic: u64, device: i32, disabled: bool, verbose: bool) =
            "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb";
        destroy(this: *mut c_void) = "_ZN2tt8tt_metal25SharedMemoryStatsProviderD1Ev";
        allocation(this: *mut c_void, pid: i32, bytes: u64, kind: u8, chip: u32) =
            "_ZN2tt8tt_metal25SharedMemoryStatsProvider17record_allocationEimNS0_13ShmBufferTypeEj";
        deallocation(this: *mut c_void, pid: i32, bytes: u64, kind: u8, chip: u32) =
            "_ZN2tt8tt_metal25SharedMemoryStatsProvider19record_deallocationEimNS0_13ShmBufferTypeEj";
    }
}

/// One attachment to a region. It is given up when dropped.
struct Provider {
    functions: ProviderFunctions,
    device: u32,
    object: Box<Storage>,
}

impl Provider {
    fn open(functions: ProviderFunctions, asic: u64, device: u32) -> Provider {
        let mut object = Storage::new();
        // SAFETY: The object is 32 bytes; the storage is larger, aligned, and does not move.
        unsafe { (functions.construct)(object.as_ptr(), asic, device as i32, false, false) };
        Provider { functions, device, object }
    }

    fn record(&mut self, event: Record, bytes: u64, kind: MemoryKind, chip: u32) {
        let pid = std::process::id() as i32;
        // SAFETY: The object was constructed in `open`.
        unsafe { event(self.object.as_ptr(), pid, bytes, script::code(kind), chip) };
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // SAFETY: The object was constructed in `open` and is not used again.
        unsafe { (self.functions.destroy)(self.object.as_ptr()) };
    }
}

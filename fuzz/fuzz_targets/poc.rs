//! Any bytes, cut anywhere, as messages of the proof of concept: `cargo +nightly fuzz run poc`.

#![no_main]

use ledger::poc::{Accounts, MostBuffers, Splitter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut accounts = Accounts::new(MostBuffers { process: 1000, user: 1500 });
    let mut splitters = [Splitter::default(), Splitter::default()];
    let mut rest = input;
    // A byte says who speaks, whether there is a pause, and how much comes at once.
    while let [how, more @ ..] = rest {
        let who = usize::from(how >> 7);
        let (now, later) = more.split_at(more.len().min(usize::from(how & 63) * 4));
        rest = later;
        let mut enter = |request: Result<ledger::poc::PocRequest, _>, _| {
            if let Ok(request) = request {
                let _ = accounts.apply(who, 7, &request);
            }
        };
        splitters[who].feed(now, &mut enter);
        if how & 64 != 0 {
            splitters[who].pause(&mut enter);
        }
    }
    let devices: std::collections::BTreeSet<i32> =
        accounts.iter().flat_map(|(_, account)| account.buffers().map(|(device, ..)| device)).collect();
    for device in devices {
        for kind in ledger::book::MemoryKind::ALL {
            let buffers = accounts.iter().flat_map(|(_, account)| account.buffers());
            let here = buffers.filter(|(of, _, buffer)| *of == device && buffer.kind == kind);
            let sum = here.fold(0u128, |sum, (.., buffer)| sum + u128::from(buffer.bytes));
            assert_eq!(u128::from(accounts.total(device)[kind as usize]), sum.min(u128::from(u64::MAX)));
        }
    }
    accounts.end(0);
    accounts.end(1);
    assert_eq!(accounts.iter().count(), 0);
});

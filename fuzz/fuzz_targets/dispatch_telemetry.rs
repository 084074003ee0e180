//! Any bytes as a control block and as blocks of dispatch cores: `cargo +nightly fuzz run dispatch_telemetry`.

#![no_main]

use ledger::dispatch_telemetry::Unknown;
use ledger::dispatch_telemetry::block::{Control, Head, LONGEST_READ, TelemetryCore};
use ledger::dispatch_telemetry::formula::{TelemetrySample, TelemetryWindow, RETRIES, SHORTEST_NS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(control) = Control::decode(input) {
        assert!(control.address != 0);
    }
    if let Some(head) = input.first_chunk() {
        let _ = Head::check(*head, TelemetryCore::Dispatch);
        let _ = Head::check(*head, TelemetryCore::Prefetch);
    }
    // Every read finds what comes next, and then the same for good.
    let (mut rest, mut reads) = (input, 0);
    let mut sample = |at_ns| {
        reads = 0;
        let read = |_: u64, into: &mut [u8]| {
            reads += 1;
            assert!(into.len() <= LONGEST_READ && reads <= 3 + 2 * RETRIES);
            let (now, later) = rest.split_at(into.len().min(rest.len()));
            into[..now.len()].copy_from_slice(now);
            rest = later;
            Ok::<_, Unknown>(())
        };
        TelemetrySample::read(read, || at_ns)
    };
    let (Ok(before), Ok(after)) = (sample(0), sample(SHORTEST_NS)) else { return };
    if let Ok(window) = TelemetryWindow::between(&before, &after) {
        assert!(window.busy_ticks() <= window.ticks && window.busy_ns() <= window.ns);
    }
});

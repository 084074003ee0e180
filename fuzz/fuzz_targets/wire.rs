//! Any bytes, cut anywhere, as frames of the service's own socket: `cargo +nightly fuzz run wire`.

#![no_main]

use ledger::wire::{Frames, LONGEST_REQUEST, Request, frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(request) = Request::decode(input) {
        let again = frame(&request).unwrap();
        assert_eq!(Request::decode(&again[4..]).unwrap(), request);
    }
    let (mut whole, mut cut) = (Frames::up_to(LONGEST_REQUEST), Frames::up_to(LONGEST_REQUEST));
    whole.feed(input);
    let mut seen = Vec::new();
    for chunk in input.chunks(7) {
        cut.feed(chunk);
        while let Some(Ok(frame)) = cut.next_frame() {
            seen.push(frame);
        }
    }
    for frame in seen {
        let same = whole.next_frame().unwrap().unwrap();
        assert_eq!(frame, same);
        let _ = Request::decode(&frame);
    }
});

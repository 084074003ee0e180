//! The agent inside of the real `libtt_metal.so`, on clusters without hardware.

use crate::harness::{self, Harness, Pages, books, compile, newest, value, wheels};
use ledger::book::{BankReading, Counter, MemoryKind};
use ledger::wire::Request;
use rustix::net::{self, AddressFamily, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

const BUFFERS: [MemoryKind; 4] = [MemoryKind::Dram, MemoryKind::L1, MemoryKind::L1Small, MemoryKind::Trace];

/// Whether the book of a mesh says of each chip what the mesh's allocator says.
fn assert_agree(harness: &mut Harness, chips: u32) {
    let book = harness.book();
    for kind in BUFFERS {
        let allocated = harness.allocated(kind);
        for chip in 0..chips {
            assert_eq!(book.bytes(chip, kind), allocated, "{} of chip {chip}", kind.name());
        }
    }
    let read = book.read();
    assert_eq!((read.remark, read.is_inexact, read.unknown_frees), (None, false, 0));
    assert_eq!(read.chips.len(), chips as usize);
}

#[test]
fn the_book_agrees_with_the_allocator_to_the_byte() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        for command in [
            "alloc 1 2048 2048 l1",
            "alloc 2 2048 2048 dram",
            "alloc 3 133120 2048 l1",
            "alloc 4 34816 34 dram",
            "alloc 5 4096 4096 trace",
            "alloc 6 2048 2048 l1_small",
            "tensor 7 2097152 2048 dram",
            "free 3",
            "free 2",
            "tensor 8 2048 2048 l1",
            "free 7",
        ] {
            harness.ok(command);
            assert_agree(&mut harness, 1);
        }
        let book = harness.book();
        let l1 = book.counter(0, MemoryKind::L1);
        // One tile takes a page in each of 64 banks, where tt-metal's shared memory says 2048.
        assert_eq!((l1.bytes, l1.logical, l1.buffers), (2 * 131_072, 2 * 2048, 2));
        assert_eq!(l1.peak, 131_072 + 262_144);
    }
}

#[test]
fn a_buffer_is_entered_with_all_that_is_known_of_it() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        let reply = harness.ok("alloc 1 34816 34 dram");
        let table = harness.book().table();
        let buffer = &table.buffers.iter().find(|buffer| buffer.logical == 34_816).unwrap();
        assert_eq!(buffer.address, value(&reply, "address"));
        assert_eq!(buffer.per_bank, value(&reply, "per_bank"));
        assert_eq!((buffer.kind, buffer.page, buffer.layout, buffer.banks), (MemoryKind::Dram, 34, 0, 12));
        assert_eq!(buffer.label, None);
    }
}

#[test]
fn the_producer_says_how_it_learns() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2048 2048 l1");
        let how = if Some(wheel) == newest() { "with accessors" } else { "by decoded layout" };
        let producer = harness.book().read().producer;
        assert_eq!(producer, format!("ttmon-agent {}, libtt_metal {how}", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn a_mesh_has_its_buffers_on_every_chip() {
    for wheel in wheels() {
        for (cluster, shape, chips, first_id) in [
            ("n300.yaml", "1x2", 2, 7_310_579_611_300_000_300),
            ("t3k.yaml", "2x4", 8, 7_310_579_611_800_000_800),
            ("p150.yaml", "1x1", 1, 7_310_579_611_500_000_150),
        ] {
            let mut harness = Harness::start(&wheel, cluster, Some(shape));
            harness.ok("tensor 1 2097152 2048 dram");
            harness.ok("alloc 2 4096 2048 l1");
            harness.ok("alloc 3 4096 2048 trace");
            assert_agree(&mut harness, chips);
            let ids: Vec<_> = harness.book().read().chips.iter().map(|chip| (chip.device_id, chip.unique_id)).collect();
            for chip in 0..chips {
                assert!(ids.contains(&(chip, Some(first_id + u64::from(chip)))), "{ids:?}");
            }
            harness.ok("free 1");
            assert_agree(&mut harness, chips);
        }
    }
}

#[test]
fn all_threads_count() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("thread alloc 1 2097152 2048 dram");
        harness.ok("thread tensor 2 2048 2048 l1");
        harness.ok("alloc 3 2048 2048 l1");
        assert_agree(&mut harness, 1);
        harness.ok("free 1");
        harness.ok("thread free 3");
        assert_agree(&mut harness, 1);
        assert_eq!(harness.book().counter(0, MemoryKind::L1).buffers, 1);
    }
}

#[test]
fn bank_figures_are_the_allocators_own() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2097152 2048 dram");
        let book = harness.book();
        // Those of the other kinds are there from the first buffer on.
        assert!(book.read().chips[0].banks.iter().all(Option::is_some));
        for command in ["alloc 2 1048576 2048 dram", "alloc 3 2048 2048 dram", "free 2"] {
            std::thread::sleep(Duration::from_millis(60));
            harness.ok(command);
            let figures = book.read().chips[0].banks[MemoryKind::Dram as usize].unwrap();
            let stats = harness.ok("stats dram");
            assert_eq!(figures_of(&figures), stated(&stats), "{command}");
        }
    }
}

fn figures_of(bank: &BankReading) -> [Option<u64>; 5] {
    [Some(bank.allocatable), Some(bank.allocated), Some(bank.free), bank.largest_free, Some(bank.banks.into())]
}

fn stated(stats: &str) -> [Option<u64>; 5] {
    ["allocatable", "allocated", "free", "largest_free", "banks"].map(|name| Some(value(stats, name)))
}

#[test]
fn the_largest_free_block_is_the_allocators_after_every_event() {
    let clusters = [("n150.yaml", None), ("p150.yaml", None), ("t3k.yaml", Some("2x4"))];
    for (wheel, (cluster, shape)) in wheels().iter().flat_map(|wheel| clusters.map(|cluster| (wheel, cluster))) {
        let mut harness = Harness::start(wheel, cluster, shape);
        // So many in a row that the allocator is no longer asked with each.
        harness.ok("hold 3000 2048 2048 dram");
        harness.ok("hold 300 2048 2048 l1");
        let book = harness.book();
        let mut asked_too_early = 0;
        for n in 0..40 {
            let kind = ["dram", "l1", "trace"][n % 3];
            harness.ok(&format!("alloc {n} {} 2048 {kind}", 2048 * (1 + n * 7 % 5)));
            if n >= 9 && n % 2 == 0 {
                harness.ok(&format!("free {}", n - 9));
            }
            let now = book.read_with_banks();
            asked_too_early += now.chips.iter().filter(|_| book.read() != now).count();
            for kind in ["dram", "l1", "l1_small", "trace"] {
                let stats = harness.ok(&format!("stats {kind}"));
                let kind = MemoryKind::ALL.into_iter().find(|it| it.name() == kind).unwrap();
                for chip in &now.chips {
                    let bank = chip.banks[kind as usize].unwrap();
                    assert_eq!(figures_of(&bank), stated(&stats), "{cluster} {n} {kind:?} {wheel:?}");
                }
            }
        }
        // On a busy machine the allocator is asked more often.
        assert!(asked_too_early > 0, "the buffers had to say it");
    }
}

#[test]
fn churn_leaves_nothing_behind() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("hold 3000 2048 2048 dram");
        harness.ok("churn 20000 2048 2048 l1");
        assert_agree(&mut harness, 1);
        let book = harness.book();
        assert_eq!(book.counter(0, MemoryKind::Dram).buffers, 3000);
        assert_eq!((book.counter(0, MemoryKind::L1).buffers, book.counter(0, MemoryKind::L1).allocations), (0, 20_000));
        assert_eq!(book.table().buffers.len(), 3000);
    }
}

#[test]
fn what_was_left_when_the_device_was_closed_is_counted_apart() {
    for wheel in wheels() {
        for end in ["close", "drop"] {
            let mut harness = Harness::start(&wheel, "n300.yaml", Some("1x2"));
            harness.ok("tensor 1 2097152 2048 dram");
            let bytes = harness.allocated(MemoryKind::Dram);
            harness.ok(end);
            let book = harness.book().read();
            for chip in &book.chips {
                let dram = chip.counters[MemoryKind::Dram as usize];
                assert_eq!((dram.bytes, dram.buffers, dram.left, chip.left_bytes), (0, 0, 1, bytes), "{end}");
            }
            assert_eq!(book.tabled, 0);
        }
    }
}

#[test]
fn a_clean_end_is_said_so() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2097152 2048 dram");
        let book = harness.book();
        assert!(!book.read().is_closed);
        harness.ok("quit");
        assert_eq!(harness.end(), Some(0));
        let read = book.read();
        assert!(read.is_closed);
        assert_eq!((read.tabled, book.bytes(0, MemoryKind::Dram)), (0, 0));
    }
}

#[test]
fn an_end_with_the_device_open_keeps_what_was_live() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2097152 2048 dram");
        let (book, bytes) = (harness.book(), harness.allocated(MemoryKind::Dram));
        harness.say("abandon");
        assert_eq!(harness.end(), Some(0));
        assert!(book.read().is_closed);
        assert_eq!((book.bytes(0, MemoryKind::Dram), book.table().buffers.len()), (bytes, 1));
    }
}

#[test]
fn a_killed_process_leaves_its_last_state() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2097152 2048 dram");
        let (book, bytes) = (harness.book(), harness.allocated(MemoryKind::Dram));
        harness.kill();
        assert_eq!((book.read().is_closed, book.bytes(0, MemoryKind::Dram)), (false, bytes));
    }
}

#[test]
fn a_forked_child_keeps_a_book_of_its_own() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n150.yaml", None);
        harness.ok("alloc 1 2048 2048 l1");
        let idle = value(&harness.ok("fork"), "child") as u32;
        let busy = harness.ok("fork alloc 2 4096 4096 dram");
        let (busy, per_bank) = (value(&busy, "child") as u32, value(&busy, "per_bank"));
        let own = |pid: u32| books(pid).into_iter().filter(|book| book.read().pid == pid).collect::<Vec<_>>();
        assert_eq!(own(idle).len(), 0, "nothing to enter, no book");
        let theirs = own(busy);
        assert_eq!(theirs.len(), 1);
        assert_eq!((theirs[0].bytes(0, MemoryKind::Dram), theirs[0].bytes(0, MemoryKind::L1)), (per_bank * 12, 0));
        // The parent's book does not have it, and is still the parent's.
        harness.ok("free 1");
        assert_agree(&mut harness, 1);
    }
}

#[test]
fn it_can_be_switched_off() {
    let Some(wheel) = newest() else { return };
    let off = [("TTMON_AGENT", "off"), ("TT_METAL_SHM_TRACKING_DISABLED", "1")];
    let mut harness = Harness::start_with(&wheel, &harness::cluster("n150.yaml"), None, &off);
    harness.ok("alloc 1 2048 2048 l1");
    assert_eq!(books(harness.pid()).len(), 0);
    assert_eq!(harness.allocated(MemoryKind::L1), 131_072, "and the calls go through");
}

/// What circular buffers claim on a chip. On a busy machine the agent puts the question off to a later buffer.
fn circular(harness: &mut Harness, chip: u32) -> Counter {
    for _ in 0..100 {
        let counter = harness.book().counter(chip, MemoryKind::Cb);
        if counter.bytes > 0 {
            return counter;
        }
        std::thread::sleep(Duration::from_millis(100));
        harness.ok("alloc 9999 2048 2048 dram");
        harness.ok("free 9999");
    }
    panic!("no circular buffers on chip {chip}");
}

#[test]
fn circular_buffers_are_what_living_programs_claim() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n300.yaml", Some("1x2"));
        harness.ok("alloc 1 2048 2048 l1");
        let cores = value(&harness.ok("cb 12288"), "cores");
        let book = harness.book();
        for chip in 0..2 {
            let cb = circular(&mut harness, chip);
            assert_eq!((cb.bytes, cb.buffers), (cores * 12_288, 1), "chip {chip}");
        }
        harness.ok("uncb");
        assert_eq!((book.bytes(0, MemoryKind::Cb), book.bytes(1, MemoryKind::Cb)), (0, 0));
        assert_agree(&mut harness, 2);
    }
}

#[test]
fn a_program_that_outlives_its_device_claims_nothing() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n300.yaml", Some("1x2"));
        harness.ok("alloc 1 2048 2048 l1");
        harness.ok("cb 12288");
        let book = harness.book();
        assert_ne!(circular(&mut harness, 1).bytes, 0);
        harness.ok("close");
        assert_eq!((book.bytes(0, MemoryKind::Cb), book.bytes(1, MemoryKind::Cb)), (0, 0));
        harness.ok("uncb");
        assert_eq!((book.bytes(0, MemoryKind::Cb), book.bytes(1, MemoryKind::Cb)), (0, 0));
        let read = book.read();
        assert_eq!((read.chips.len(), read.remark, read.is_inexact), (2, None, false));
    }
}

#[test]
fn chips_are_known_by_the_number_of_tt_metals_own_region() {
    for (wheel, unique_id) in wheels().iter().zip([7_310_579_611_150_000_777_u64, 7_310_579_611_150_000_778]) {
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().join("n150.yaml");
        let ours = fs::read_to_string(harness::cluster("n150.yaml")).unwrap();
        fs::write(&cluster, ours.replace("7310579611150000150", &unique_id.to_string())).unwrap();
        let mut harness = Harness::start_with(wheel, &cluster, None, &[]);
        let region = format!("/dev/shm/tt_device_{unique_id}_memory");
        assert!(Path::new(&region).exists());
        // The chip is in the book before there is a buffer.
        let chips = |harness: &Harness| -> Vec<_> {
            harness.book().read().chips.iter().map(|chip| (chip.device_id, chip.unique_id)).collect()
        };
        assert_eq!(chips(&harness), [(0, Some(unique_id))]);
        harness.ok("thread alloc 1 2097152 2048 dram");
        assert_eq!(chips(&harness), [(0, Some(unique_id))]);
        assert_agree(&mut harness, 1);
        // Which it does not count, being another thread's.
        let total = fs::read(&region).unwrap()[48..56].try_into().map(u64::from_le_bytes).unwrap();
        assert_eq!(total, 0);
        harness.ok("quit");
        harness.end();
        fs::remove_file(region).unwrap();
    }
}

#[test]
fn two_processes_on_one_chip_have_a_book_each() {
    for wheel in wheels() {
        let mut one = Harness::start(&wheel, "n150.yaml", None);
        let mut other = Harness::start(&wheel, "n150.yaml", None);
        one.ok("alloc 1 2097152 2048 dram");
        other.ok("alloc 1 2048 2048 dram");
        assert_agree(&mut one, 1);
        assert_agree(&mut other, 1);
        assert_ne!(one.book().bytes(0, MemoryKind::Dram), other.book().bytes(0, MemoryKind::Dram));
        assert_eq!(one.book().read().pid, one.pid());
    }
}

#[test]
fn a_service_that_listens_is_handed_the_book() {
    let Some(wheel) = newest() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("books");
    let service = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let address = SocketAddrUnix::new(&path).unwrap();
    let environment = [("TT_METAL_SHM_TRACKING_DISABLED", "1"), ("TTMON_BOOK_SOCKET", path.to_str().unwrap())];
    let mut harness = Harness::start_with(&wheel, &harness::cluster("n150.yaml"), None, &environment);
    // No service listens at first, which does no harm; it is tried again a second later.
    harness.ok("alloc 1 2048 2048 l1");
    net::bind(&service, &address).unwrap();
    net::listen(&service, 1).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    harness.ok("alloc 2 2048 2048 l1");

    let peer = net::accept(&service).unwrap();
    let mut text = [0; 512];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = net::RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut text)];
    let got = net::recvmsg(&peer, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap();
    let mut frames = ledger::wire::Frames::up_to(512);
    frames.feed(&text[..got.bytes]);
    let said = std::iter::from_fn(|| frames.next_frame()).map(|frame| Request::decode(&frame.unwrap()).unwrap()).last();
    assert_eq!(said, Some(Request::Book { pid: harness.pid() }));
    let file = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let book = Pages::from(file.unwrap().into());
    assert_eq!(book.read().pid, harness.pid());
    harness.ok("alloc 3 2048 2048 l1");
    assert_eq!(book.counter(0, MemoryKind::L1).buffers, 3, "and it is the book itself, not a copy");
}

#[test]
fn any_sequence_of_buffers_leaves_book_and_allocator_in_agreement() {
    for wheel in wheels() {
        let mut harness = Harness::start(&wheel, "n300.yaml", Some("1x2"));
        let (mut live, mut state) = (Vec::new(), 0x2545_F491_4F6C_DD1D_u64);
        for id in 0..400 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let pages = 1 + (state >> 8) % 200;
            let (kind, page) =
                [("dram", 2048), ("l1", 1024), ("l1", 34), ("trace", 32), ("dram", 4096)][state as usize % 5];
            let pages = if kind == "trace" { 1 + pages % 3 } else { pages };
            let how = ["alloc", "tensor", "thread alloc"][(state >> 40) as usize % 3];
            harness.ok(&format!("{how} {id} {} {page} {kind}", pages * page));
            live.push(id);
            while live.len() > 30 || (state >> 50) % 3 == 0 && live.len() > 5 {
                harness.ok(&format!("free {}", live.swap_remove((state >> 20) as usize % live.len())));
            }
            if id % 20 == 0 {
                assert_agree(&mut harness, 2);
            }
        }
        assert_agree(&mut harness, 2);
        assert_eq!(harness.book().table().buffers.len(), live.len());
    }
}

/// A library that hides the allocator's side from the agent, as one would that calls it directly.
#[test]
fn where_the_allocator_is_not_heard_of_an_announced_free_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (source, shim) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
    let name = "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE";
    let code = format!(
        "#include <dlfcn.h>
        void {name}(void *allocator, void *buffer) {{
            void *library = dlopen(\"libtt_metal.so\", RTLD_LAZY | RTLD_NOLOAD);
            ((void (*)(void *, void *))dlsym(library, \"{name}\"))(allocator, buffer);
        }}"
    );
    fs::write(&source, code).unwrap();
    compile(&source, &shim, &["-shared", "-fPIC"]);
    for wheel in wheels() {
        let preload = format!("{}:{}", shim.display(), harness::built("libttmon_agent.so").display());
        let environment = [("TT_METAL_SHM_TRACKING_DISABLED", "1"), ("LD_PRELOAD", preload.as_str())];
        let mut harness = Harness::start_with(&wheel, &harness::cluster("n150.yaml"), None, &environment);
        for id in 1..=4 {
            harness.ok(&format!("alloc {id} 2048 2048 l1"));
        }
        // The first one may be on its way.
        harness.ok("free 1");
        assert_eq!(harness.book().counter(0, MemoryKind::L1).buffers, 4);
        harness.ok("free 2");
        assert_agree(&mut harness, 1);
        harness.ok("free 3");
        assert_agree(&mut harness, 1);
        assert_eq!(harness.book().counter(0, MemoryKind::L1).buffers, 1);
    }
}

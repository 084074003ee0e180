//! The fields of a process on a device that only its book can answer: for every kind of memory the same row of figures.

use super::field::Unit::{InName, None as NoUnit};
use super::field::Value;
use super::process_fields::{ProcessField, ProcessRow, field};
use model::{BankFigures, Bytes, Exact, KindFigures};

/// The fields of one kind, `$kind`, which people call `$name`.
macro_rules! of_kind {
    ($kind:ident, $name:literal) => {{
        fn of(row: &ProcessRow, figure: fn(&KindFigures) -> u64) -> Option<Value> {
            figures(row, |exact| exact.$kind).map(|figures| Value::Integer(figure(&figures)))
        }
        &[
            field(
                concat!(stringify!($kind), "_logical_bytes"),
                &[],
                InName("B"),
                concat!("Bytes of ", $name, " that it asked for; what was reserved for them can be more."),
                |r| of(r, |f| f.logical_bytes.0),
            ),
            field(
                concat!(stringify!($kind), "_buffers"),
                &[],
                NoUnit,
                concat!("Its live buffers of ", $name, "."),
                |r| of(r, |f| f.buffers),
            ),
            field(
                concat!(stringify!($kind), "_peak_bytes"),
                &[],
                InName("B"),
                concat!("The most bytes of ", $name, " that were reserved at any time."),
                |r| of(r, |f| f.peak_bytes.0),
            ),
            field(
                concat!(stringify!($kind), "_allocations"),
                &[],
                NoUnit,
                concat!("Allocations of ", $name, " so far."),
                |r| of(r, |f| f.allocations),
            ),
            field(concat!(stringify!($kind), "_frees"), &[], NoUnit, concat!("Frees of ", $name, " so far."), |r| {
                of(r, |f| f.frees)
            }),
        ]
    }};
}

/// The fields of the banks of one kind.
macro_rules! of_banks {
    ($kind:ident, $name:literal) => {{
        fn of(row: &ProcessRow, figure: fn(&BankFigures) -> Bytes) -> Option<Value> {
            banks(row).map(|banks| Value::Integer(figure(&banks).0))
        }
        fn banks(row: &ProcessRow) -> Option<BankFigures> {
            figures(row, |exact| exact.$kind)?.banks
        }
        &[
            field(concat!(stringify!($kind), "_banks"), &[], NoUnit, concat!("Banks of ", $name, "."), |r| {
                banks(r).map(|b| Value::Integer(b.count.into()))
            }),
            field(
                concat!(stringify!($kind), "_bank_allocatable_bytes"),
                &[],
                InName("B"),
                concat!("What its allocator can hand out in a bank of ", $name, "."),
                |r| of(r, |b| b.allocatable_bytes),
            ),
            field(
                concat!(stringify!($kind), "_bank_allocated_bytes"),
                &[],
                InName("B"),
                "What it has handed out there.",
                |r| of(r, |b| b.allocated_bytes),
            ),
            field(concat!(stringify!($kind), "_bank_free_bytes"), &[], InName("B"), "What is left there.", |r| {
                of(r, |b| b.free_bytes)
            }),
            field(
                concat!(stringify!($kind), "_bank_largest_free_bytes"),
                &[],
                InName("B"),
                "The largest piece of it.",
                |r| of(r, |b| b.largest_free_bytes),
            ),
            field(
                concat!(stringify!($kind), "_fragmentation_percent"),
                &[],
                InName("%"),
                "How much of what is left a single buffer cannot have.",
                |r| banks(r)?.fragmentation.map(|share| Value::Decimal(share * 100.0, 2)),
            ),
            field(
                concat!(stringify!($kind), "_bank_age_seconds"),
                &[],
                InName("s"),
                "How old the last two are; 0 when nothing has changed since.",
                |r| banks(r).map(|b| Value::Decimal(b.age_seconds.unwrap_or(0.0), 3)),
            ),
        ]
    }};
}

/// All of them.
#[rustfmt::skip]
pub const EXACT_FIELDS: &[&[ProcessField]] = &[
    of_kind!(dram, "DRAM"), of_banks!(dram, "DRAM"),
    of_kind!(l1, "L1"), of_banks!(l1, "L1"),
    of_kind!(l1_small, "L1_SMALL"), of_banks!(l1_small, "L1_SMALL"),
    of_kind!(trace, "TRACE"), of_banks!(trace, "TRACE"),
    of_kind!(cb, "CB"),
    of_kind!(kernel, "KERNEL"),
    &[
        field("kernel_bytes", &[], InName("B"), "Its kernel code, where the runtime tells.", |r| figures(r, |exact| exact.kernel).map(|f| Value::Integer(f.bytes.0))),
        field("agent", &[], NoUnit, "Who keeps its book. Without one all of the above are [N/A].", |r| Value::text(&r.process.agent)),
    ],
];

fn figures(row: &ProcessRow, kind: fn(&Exact) -> Option<KindFigures>) -> Option<KindFigures> {
    kind(row.held.exact.as_ref()?)
}

//! The kinds of device memory.

named! {
    /// A kind of device memory. Books have its number.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum MemoryKind {
        /// Buffers in DRAM.
        Dram = "dram",
        /// Buffers in L1.
        L1 = "l1",
        /// Buffers in the small L1 region.
        L1Small = "l1_small",
        /// Recorded command traces, in DRAM.
        Trace = "trace",
        /// Circular buffers, in L1.
        Cb = "cb",
        /// Kernel code. Beside the L1 in use, not part of it.
        Kernel = "kernel",
    }
}

impl MemoryKind {
    /// The kinds that DRAM in use consists of.
    pub const DRAM_USED: [MemoryKind; 2] = [MemoryKind::Dram, MemoryKind::Trace];
    /// The kinds that L1 in use consists of.
    pub const L1_USED: [MemoryKind; 3] = [MemoryKind::L1, MemoryKind::L1Small, MemoryKind::Cb];

    /// Whether an allocator with banks hands it out.
    pub fn has_banks(self) -> bool {
        matches!(self, MemoryKind::Dram | MemoryKind::L1 | MemoryKind::L1Small | MemoryKind::Trace)
    }

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<MemoryKind> {
        MemoryKind::ALL.get(usize::from(number)).copied()
    }

    /// As tt-metal and reports spell it: `L1_SMALL`.
    pub fn title(self) -> &'static str {
        match self {
            MemoryKind::Dram => "DRAM",
            MemoryKind::L1 => "L1",
            MemoryKind::L1Small => "L1_SMALL",
            MemoryKind::Trace => "TRACE",
            MemoryKind::Cb => "CB",
            MemoryKind::Kernel => "KERNEL",
        }
    }

    /// Its heading in tables of processes, where columns are narrow: `L1SML`.
    pub fn heading(self) -> &'static str {
        if self == MemoryKind::L1Small { "L1SML" } else { self.title() }
    }

    /// Its heading in `pmon`, which has a column for each part of what is used apart from the buffers.
    pub fn column_of_part(self) -> Option<&'static str> {
        match self {
            MemoryKind::L1Small => Some("l1sml"),
            MemoryKind::Trace | MemoryKind::Cb => Some(self.name()),
            MemoryKind::Dram | MemoryKind::L1 | MemoryKind::Kernel => None,
        }
    }
}

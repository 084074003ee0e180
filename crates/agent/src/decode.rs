//! Reads where the fields of an object are from the machine code of its shortest functions (x86-64, System V).
//!
//! Before 0.79 tt-metal exports functions that answer some facts about a buffer, and keeps others inline. Those that are
//! exported are a handful of instructions each, so the offsets in them give the layout. Only the exact forms that the
//! released libraries have are known; anything else is refused.

/// Where a buffer of tt-metal 0.66 to 0.78 keeps what no exported function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// A pointer to the device.
    pub device: usize,
    /// Bytes, 64 bits.
    pub size: usize,
    /// The number of the buffer's type, 32 bits.
    pub kind: usize,
    /// The number of the buffer's layout, 32 bits.
    pub layout: Option<usize>,
}

/// The code of the functions from which the layout is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct BufferCode<'a> {
    pub page_size: &'a [u8],
    pub num_pages: &'a [u8],
    pub is_l1: &'a [u8],
    pub is_dram: &'a [u8],
    pub aligned_size_per_bank: &'a [u8],
}

impl Layout {
    /// Combines what the functions show, if they agree.
    pub fn of(functions: BufferCode) -> Option<Layout> {
        let page = page_size(functions.page_size)?;
        let (same_page, size) = num_pages(functions.num_pages)?;
        let kind = is_l1(functions.is_l1)?;
        let same_kind = is_dram(functions.is_dram)?;
        // The members are declared in this order: device, size, type, layout.
        let neighbours = kind == size.checked_add(8)?;
        let whole = size % 8 == 0 && page % 8 == 0;
        if page != same_page || kind != same_kind || !neighbours || !whole {
            return None;
        }
        let layout = layout(functions.aligned_size_per_bank).filter(|layout| *layout == kind + 4);
        Some(Layout { device: size.checked_sub(8).filter(|at| *at >= 8)?, size, kind, layout })
    }
}

/// `mov page(%rdi), %rax; ret`
fn page_size(code: &[u8]) -> Option<usize> {
    let mut code = Code::new(code);
    code.expect(&[0x48, 0x8B])?;
    let page = code.field(RAX)?;
    code.expect(RET)?;
    Some(page)
}

/// `mov page(%rdi), %rcx; test %rcx, %rcx; je …; mov size(%rdi), %rax; mov %rax, %rdx; or %rcx, %rdx`
fn num_pages(code: &[u8]) -> Option<(usize, usize)> {
    let mut code = Code::new(code);
    code.expect(&[0x48, 0x8B])?;
    let page = code.field(RCX)?;
    code.expect(&[0x48, 0x85, 0xC9])?;
    code.short_jump_if_zero()?;
    code.expect(&[0x48, 0x8B])?;
    let size = code.field(RAX)?;
    code.expect(&[0x48, 0x89, 0xC2, 0x48, 0x09, 0xCA])?;
    Some((page, size))
}

/// `mov type(%rdi), %eax; and $-3, %eax; cmp $1, %eax; sete %al; ret`: type 1 or 3.
fn is_l1(code: &[u8]) -> Option<usize> {
    let mut code = Code::new(code);
    code.expect(&[0x8B])?;
    let kind = code.field(RAX)?;
    code.expect(&[0x83, 0xE0, 0xFD, 0x83, 0xF8, 0x01])?;
    code.expect(SETE_RET)?;
    Some(kind)
}

/// `testl $-5, type(%rdi); sete %al; ret`: type 0 or 4.
fn is_dram(code: &[u8]) -> Option<usize> {
    let mut code = Code::new(code);
    code.expect(&[0xF7])?;
    let kind = code.field(0)?;
    code.expect(&[0xFB, 0xFF, 0xFF, 0xFF])?;
    code.expect(SETE_RET)?;
    Some(kind)
}

/// `mov layout(%rdi), %eax; add $-2, %eax; cmp $3, %eax`, after whatever the function begins with: layouts 2 to 5.
fn layout(code: &[u8]) -> Option<usize> {
    (0..code.len()).find_map(|at| {
        let mut code = Code(code.get(at..)?);
        code.expect(&[0x8B])?;
        let layout = code.field(RAX)?;
        code.expect(&[0x83, 0xC0, 0xFE, 0x83, 0xF8, 0x03])?;
        Some(layout)
    })
}

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDI: u8 = 7;
const RET: &[u8] = &[0xC3];
const SETE_RET: &[u8] = &[0x0F, 0x94, 0xC0, 0xC3];
/// Objects are smaller than this.
const FAR: usize = 4096;

/// Code that is left to read.
struct Code<'a>(&'a [u8]);

impl<'a> Code<'a> {
    fn new(code: &'a [u8]) -> Code<'a> {
        const ENDBR64: &[u8] = &[0xF3, 0x0F, 0x1E, 0xFA];
        Code(code.strip_prefix(ENDBR64).unwrap_or(code))
    }

    fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// An operand `offset(%rdi)`, beside a register or the rest of an opcode.
    fn field(&mut self, register: u8) -> Option<usize> {
        let modrm = self.byte()?;
        if (modrm >> 3) & 7 != register || modrm & 7 != RDI {
            return None;
        }
        let offset = match modrm >> 6 {
            1 => usize::try_from(self.byte()? as i8).ok()?,
            2 => {
                let (offset, rest) = self.0.split_first_chunk::<4>()?;
                self.0 = rest;
                usize::try_from(i32::from_le_bytes(*offset)).ok()?
            }
            _ => return None,
        };
        (offset < FAR && offset % 4 == 0).then_some(offset)
    }

    fn short_jump_if_zero(&mut self) -> Option<()> {
        self.expect(&[0x74])?;
        // Forwards.
        (self.byte()? < 0x80).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As in ttnn 0.78.0.
    const RELEASED: BufferCode = BufferCode {
        page_size: &[0x48, 0x8B, 0x47, 0x58, 0xC3],
        num_pages: &[
            0x48, 0x8B, 0x4F, 0x58, 0x48, 0x85, 0xC9, 0x74, 0x16, 0x48, 0x8B, 0x47, 0x18, 0x48, 0x89, 0xC2, 0x48, 0x09,
            0xCA, 0x48, 0xC1, 0xEA, 0x20, 0x74, 0x09,
        ],
        is_l1: &[0x8B, 0x47, 0x20, 0x83, 0xE0, 0xFD, 0x83, 0xF8, 0x01, 0x0F, 0x94, 0xC0, 0xC3],
        is_dram: &[0xF7, 0x47, 0x20, 0xFB, 0xFF, 0xFF, 0xFF, 0x0F, 0x94, 0xC0, 0xC3],
        aligned_size_per_bank: &[
            0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x53, 0x48, 0x83, 0xEC, 0x10, 0x48, 0x89, 0xFB, 0x8B, 0x47,
            0x24, 0x83, 0xC0, 0xFE, 0x83, 0xF8, 0x03, 0x77, 0x2B,
        ],
    };

    #[test]
    fn the_layout_of_a_released_library_is_read() {
        let layout = Layout { device: 0x10, size: 0x18, kind: 0x20, layout: Some(0x24) };
        assert_eq!(Layout::of(RELEASED), Some(layout));
    }

    #[test]
    fn a_far_field_and_a_marked_entry_are_read_too() {
        assert_eq!(page_size(&[0xF3, 0x0F, 0x1E, 0xFA, 0x48, 0x8B, 0x87, 0x58, 0x01, 0, 0, 0xC3]), Some(0x158));
    }

    #[test]
    fn a_layout_that_is_not_reported_stays_unknown() {
        let silent = BufferCode { aligned_size_per_bank: &[0xC3], ..RELEASED };
        assert_eq!(Layout::of(silent).unwrap().layout, None);
    }

    #[test]
    fn functions_that_disagree_are_refused() {
        let elsewhere = [0xF7, 0x47, 0x24, 0xFB, 0xFF, 0xFF, 0xFF, 0x0F, 0x94, 0xC0, 0xC3];
        assert_eq!(Layout::of(BufferCode { is_dram: &elsewhere, ..RELEASED }), None);
        let another_page = [0x48, 0x8B, 0x47, 0x60, 0xC3];
        assert_eq!(Layout::of(BufferCode { page_size: &another_page, ..RELEASED }), None);
    }

    #[test]
    fn the_other_form_with_a_pointer_between_is_refused() {
        // 0.79 and later: mov 0x10(%rdi), %rax; mov 0x48(%rax), %rax; ret
        assert_eq!(page_size(&[0x48, 0x8B, 0x47, 0x10, 0x48, 0x8B, 0x40, 0x48, 0xC3]), None);
        // Another test than the one we know: cmp $2.
        assert_eq!(is_l1(&[0x8B, 0x47, 0x20, 0x83, 0xE0, 0xFD, 0x83, 0xF8, 0x02, 0x0F, 0x94, 0xC0, 0xC3]), None);
        // A field before the object.
        assert_eq!(page_size(&[0x48, 0x8B, 0x47, 0xF8, 0xC3]), None);
    }

    #[test]
    fn a_function_cut_short_is_refused() {
        for len in 0..RELEASED.num_pages.len() - 6 {
            let cut = BufferCode { num_pages: &RELEASED.num_pages[..len], ..RELEASED };
            assert_eq!(Layout::of(cut), None, "{len}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            page_size in any::<Vec<u8>>(),
            num_pages in any::<Vec<u8>>(),
            is_l1 in any::<Vec<u8>>(),
            is_dram in any::<Vec<u8>>(),
            aligned_size_per_bank in any::<Vec<u8>>(),
        ) {
            let functions = BufferCode {
                page_size: &page_size,
                num_pages: &num_pages,
                is_l1: &is_l1,
                is_dram: &is_dram,
                aligned_size_per_bank: &aligned_size_per_bank,
            };
            Layout::of(functions);
        }

        #[test]
        fn one_changed_byte_gives_the_same_layout_another_whole_one_or_none(which in 0usize..4, at in 0usize..19, byte: u8) {
            let mut codes = [RELEASED.page_size, RELEASED.num_pages, RELEASED.is_l1, RELEASED.is_dram].map(<[u8]>::to_vec);
            if let Some(changed) = codes[which].get_mut(at) {
                *changed = byte;
            }
            let [page_size, num_pages, is_l1, is_dram] = &codes;
            let functions = BufferCode { page_size, num_pages, is_l1, is_dram, ..RELEASED };
            if let Some(layout) = Layout::of(functions) {
                // Only the length of the jump over the division may differ.
                prop_assert_eq!(Some(layout), Layout::of(RELEASED));
            }
        }
    }
}

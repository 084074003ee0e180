//! `detailed_memory_usage.csv` of tt-metal's memory reporter, which is text for people rather than CSV.
//!
//! For each kind three totals over all banks, then the allocator's free lists, then the table of its blocks, in one bank.

use super::broken;

/// One program, or the state that was asked for.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct DetailedGroup {
    pub program: Option<String>,
    pub kinds: Vec<DetailedReport>,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct DetailedReport {
    /// `dram`, `l1` or `l1_small`.
    pub kind: String,
    /// In all banks together.
    pub allocatable: Option<u64>,
    /// In all banks together.
    pub allocated: Option<u64>,
    pub blocks: Vec<Block>,
}

/// A piece of each bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// From the beginning of what the allocator has.
    pub address: u64,
    pub bytes: u64,
    pub is_allocated: bool,
}

impl DetailedReport {
    /// The blocks fill one bank, the total is that of all.
    pub fn banks(&self) -> Option<u32> {
        let of_one = self.blocks.iter().try_fold(0u64, |sum, block| sum.checked_add(block.bytes))?;
        let total = self.allocatable?;
        let banks = total.checked_div(of_one)?;
        (total % of_one == 0).then(|| banks.try_into().ok())?
    }
}

pub fn parse(text: &str) -> Result<Vec<DetailedGroup>, String> {
    let mut groups: Vec<DetailedGroup> = Vec::new();
    let mut in_table = false;
    for (at, line) in text.lines().enumerate() {
        let broken = |what: &str| broken(at + 1, what);
        let mut fields = line.split(',').map(str::trim);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (fields.next(), fields.next(), fields.next()) {
            (Some(program), Some(kind @ ("DRAM" | "L1" | "L1_SMALL" | "TRACE")), None) => {
                in_table = false;
                begin(&mut groups, program, &kind.to_lowercase());
            }
            (Some(""), Some(name), Some(number)) if name.starts_with("Total ") => {
                let number = number.parse().map_err(|_| broken("a number of bytes is expected"))?;
                let kind = last(&mut groups).ok_or_else(|| broken("a total stands before the kind that it is of"))?;
                match name {
                    "Total allocatable (B):" => kind.allocatable = Some(number),
                    "Total allocated (B):" => kind.allocated = Some(number),
                    "Total free (B):" => {}
                    _ => return Err(broken("an unknown total")),
                }
            }
            _ if words.is_empty() => {}
            _ if line.trim() == "Block table:" => in_table = true,
            // Its header, or the free lists before it, whose form depends on the allocator.
            _ if !in_table || words.first() == Some(&"Block") => {}
            _ => {
                let block = block(&words)
                    .ok_or_else(|| broken("a block is expected: id, address, size, two neighbours, yes or no"))?;
                let kind = last(&mut groups).ok_or_else(|| broken("a block stands before the kind that it is of"))?;
                kind.blocks.push(block);
            }
        }
    }
    if groups.is_empty() {
        return Err(broken(1, "a kind of memory is expected, such as \",DRAM\""));
    }
    Ok(groups)
}

fn begin(groups: &mut Vec<DetailedGroup>, program: &str, kind: &str) {
    let has_it = |group: &DetailedGroup| group.kinds.iter().any(|known| known.kind == kind);
    if !program.is_empty() || groups.last().is_none_or(has_it) {
        let program = Some(program.to_owned()).filter(|program| !program.is_empty());
        groups.push(DetailedGroup { program, kinds: Vec::new() });
    }
    if let Some(group) = groups.last_mut() {
        group.kinds.push(DetailedReport { kind: kind.to_owned(), ..DetailedReport::default() });
    }
}

fn last(groups: &mut [DetailedGroup]) -> Option<&mut DetailedReport> {
    groups.last_mut()?.kinds.last_mut()
}

fn block(words: &[&str]) -> Option<Block> {
    let [_, address, size, _, _, allocated] = words else { return None };
    let is_allocated = *allocated == "yes";
    (is_allocated || *allocated == "no").then_some(())?;
    Some(Block { address: address.parse().ok()?, bytes: size.parse().ok()?, is_allocated })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7,DRAM
,Total allocatable (B):,1200
,Total allocated (B):,240
,Total free (B):,960
FreeListOpt allocator info:
segregated free blocks by size:
  Size class 0: (1024 - 2048) blocks: 1 
Free slots in block table: 
Block table:
       Block      Address         Size       PrevID       NextID    Allocated 
           0            0           20         none            1          yes
           1           20           80            0         none           no
,L1
,Total allocatable (B):,64
8,DRAM
";

    #[test]
    fn totals_are_of_all_banks_and_blocks_of_one() {
        let groups = parse(TEXT).unwrap();
        assert_eq!(groups.len(), 2);
        let dram = &groups[0].kinds[0];
        assert_eq!((dram.allocated, dram.banks()), (Some(240), Some(12)));
        assert_eq!(dram.blocks[0], Block { address: 0, bytes: 20, is_allocated: true });
        let l1 = &groups[0].kinds[1];
        assert_eq!((l1.kind.as_str(), l1.allocatable, l1.banks()), ("l1", Some(64), None));
        assert_eq!(groups[1].program.as_deref(), Some("8"));
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("hello"), "line 1: a kind of memory is expected, such as \",DRAM\"");
        assert_eq!(error(",Total free (B):,5"), "line 1: a total stands before the kind that it is of");
        assert_eq!(error(",L1\n,Total free (B):,five"), "line 2: a number of bytes is expected");
        let cut = TEXT.replace("none            1          yes", "none");
        assert_eq!(error(&cut), "line 11: a block is expected: id, address, size, two neighbours, yes or no");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, lines in proptest::collection::vec(0usize..16, 0..40), number: u64) {
            let _ = parse(&text);
            let all: Vec<&str> = TEXT.lines().collect();
            let mixed: String = lines.iter().map(|i| format!("{}\n", all.get(*i).unwrap_or(&text.as_str()))).collect();
            for group in parse(&mixed.replace("1200", &number.to_string())).unwrap_or_default() {
                let _ = group.kinds.iter().filter_map(DetailedReport::banks).count();
            }
        }
    }
}

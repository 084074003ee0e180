//! `memory_usage_summary.csv` and `l1_usage_summary.csv` of tt-metal's memory reporter.
//!
//! The first has three lines for each program: DRAM, L1 and L1_SMALL, which it does not name, in bytes of one bank. The
//! second calls "Total Free L1 Space" what is the largest free block times the number of banks.

use super::broken;
use model::Bytes;
use show::memory::view::{Banks, fragmentation};

/// The kinds of a group, in the order of its lines.
pub const KINDS: [&str; 3] = ["dram", "l1", "l1_small"];

/// One program, or the state that was asked for.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SummaryGroup {
    pub program: Option<String>,
    /// In the order of [`KINDS`]; fewer where the file ends early.
    pub kinds: Vec<Banks>,
}

/// Reads `memory_usage_summary.csv`.
pub fn parse(text: &str) -> Result<Vec<SummaryGroup>, String> {
    let mut groups: Vec<SummaryGroup> = Vec::new();
    for (line, program, [allocatable, allocated, free, largest]) in rows(text, "Total Allocatable Size (B)", 0)? {
        if groups.last().is_none_or(|group| group.kinds.len() == KINDS.len()) {
            groups.push(SummaryGroup { program: program.clone(), kinds: Vec::new() });
        } else if program.is_some() {
            return Err(broken(line, "a program begins where a line of the one before is missing"));
        }
        if allocated > allocatable || free > allocatable || largest > free {
            return Err(broken(line, "the figures contradict each other"));
        }
        let banks = Banks {
            allocatable_bytes: Some(Bytes(allocatable)),
            allocated_bytes: Some(Bytes(allocated)),
            free_bytes: Some(Bytes(free)),
            largest_free_bytes: Some(Bytes(largest)),
            fragmentation: fragmentation(Bytes(free), Bytes(largest)),
            allocators: 1,
            ..Banks::default()
        };
        groups.last_mut().into_iter().for_each(|group| group.kinds.push(banks.clone()));
    }
    Ok(groups)
}

/// The number of L1 banks of one program, which follows from its two figures.
#[derive(Debug, Clone, PartialEq)]
pub struct L1 {
    pub program: Option<String>,
    pub largest_free: Bytes,
    /// Absent when nothing is free.
    pub banks: Option<u32>,
}

/// Reads `l1_usage_summary.csv`.
pub fn parse_l1(text: &str) -> Result<Vec<L1>, String> {
    let rows = rows(text, "Largest Contiguous Free Block (B)", 1)?;
    let each = rows.into_iter().map(|(line, program, [largest, in_all_banks])| {
        let banks = in_all_banks.checked_div(largest);
        if in_all_banks.checked_rem(largest).is_some_and(|rest| rest > 0) {
            return Err(broken(line, "the second figure is not the first one times a number of banks"));
        }
        Ok(L1 { program, largest_free: Bytes(largest), banks: banks.and_then(|banks| banks.try_into().ok()) })
    });
    each.collect()
}

/// A line number, a program and its figures.
type Row<const N: usize> = (usize, Option<String>, [u64; N]);

/// The rows below the header, which is on the line of this index.
fn rows<const N: usize>(text: &str, first: &str, header: usize) -> Result<Vec<Row<N>>, String> {
    let mut lines = text.lines().enumerate().skip(header);
    let names = lines.next().and_then(|(_, line)| line.split(',').nth(1));
    if names.map(str::trim) != Some(first) {
        return Err(broken(header + 1, &format!("a header with {first:?} is expected")));
    }
    let rows = lines.filter(|(_, line)| !line.trim().is_empty()).map(|(at, line)| {
        let mut fields = line.split(',').map(str::trim);
        let program = fields.next().filter(|program| !program.is_empty()).map(str::to_owned);
        let numbers: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        let wrong = || broken(at + 1, &format!("a program or nothing, and {N} numbers are expected"));
        Ok((at + 1, program, numbers.ok_or_else(wrong)?))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "Program ID, Total Allocatable Size (B), Total Allocated (B), Total Free (B), Largest Free Block (B)";

    #[test]
    fn the_lines_of_a_group_are_dram_l1_and_l1_small() {
        let groups =
            parse(&format!("{HEAD}\n4,1000,200,800,600\n,100,0,100,100\n,10,10,0,0\n5,1000,0,1000,1000\n")).unwrap();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].program.as_deref(), Some("4"));
        assert_eq!(groups[0].kinds[0].fragmentation, Some(0.25));
        assert_eq!(groups[0].kinds[2].fragmentation, None, "nothing is free");
        assert_eq!(groups[1].kinds.len(), 1, "what the file lacks is absent");
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1: a header with \"Total Allocatable Size (B)\" is expected");
        assert_eq!(error(&format!("{HEAD}\n,1,2")), "line 2: a program or nothing, and 4 numbers are expected");
        assert_eq!(error(&format!("{HEAD}\n,1,x,1,1,1,1")), "line 2: a program or nothing, and 4 numbers are expected");
        assert_eq!(error(&format!("{HEAD}\n,1,2,3,4")), "line 2: the figures contradict each other");
        let cut = format!("{HEAD}\n1,9,0,9,9\n2,9,0,9,9\n");
        assert_eq!(error(&cut), "line 3: a program begins where a line of the one before is missing");
    }

    #[test]
    fn the_misnamed_column_tells_the_number_of_banks() {
        let text = "This report\n, Largest Contiguous Free Block (B), Total Free L1 Space (B)\n,1000,64000\n,0,0\n";
        let all = parse_l1(text).unwrap();
        assert_eq!((all[0].largest_free, all[0].banks), (Bytes(1000), Some(64)));
        assert_eq!(all[1].banks, None);
        let error = parse_l1(&text.replace("64000", "64001")).unwrap_err().to_string();
        assert_eq!(error, "line 3: the second figure is not the first one times a number of banks");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, rows in "([0-9]{0,3}(,[0-9]{0,20}){0,6}\n){0,9}") {
            let _ = (parse(&text), parse_l1(&text));
            let _ = parse(&format!("{HEAD}\n{rows}"));
            let _ = parse_l1(&format!("x\n, Largest Contiguous Free Block (B), y\n{rows}"));
        }
    }
}

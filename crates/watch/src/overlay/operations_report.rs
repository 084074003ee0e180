//! `ops_perf_results_*.csv` of tt-metal's profiler: a row for each operation, with the host's times in nanoseconds since the profiler
//! began, and the chip's in cycles.

use super::csv::Records;
use super::{Clock, RawSlice, shortened};
use std::io::BufRead;

/// What was in the report.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct OperationsReportHead {
    /// Cycles of the chips in a nanosecond, as its rows say.
    pub gigahertz: Option<f64>,
    /// Rows that have neither a time of the host nor one of a chip, such as signposts.
    pub without_time: u64,
}

/// Hands over the time of each operation on the host, and on its chip.
pub fn decode(from: impl BufRead, mut each: impl FnMut(RawSlice<'_>)) -> Result<OperationsReportHead, String> {
    let mut records = Records::new(from);
    let mut fields = Vec::new();
    records.next(&mut fields)?;
    let find = |wanted: &str, names: &[String]| names.iter().position(|name| name == wanted);
    let Some(name_at) = find("OP CODE", &fields) else { return Err("line 1: expected a column \"OP CODE\"".into()) };
    let [chip, call, host_start, host_end, start, end, length] = [
        "DEVICE ID",
        "GLOBAL CALL COUNT",
        "HOST START TS",
        "HOST END TS",
        "DEVICE FW START CYCLE",
        "DEVICE FW END CYCLE",
        "DEVICE FW DURATION [ns]",
    ]
    .map(|name| find(name, &fields));
    let mut head = OperationsReportHead::default();
    let (mut cycles, mut nanoseconds) = (0.0, 0.0);
    while records.next(&mut fields)? {
        let number = |at: Option<usize>| whole(fields.get(at?)?);
        let name = fields.get(name_at).map_or("", String::as_str);
        let name = shortened(name);
        let chip = number(chip).and_then(|chip| u32::try_from(chip).ok());
        let run = number(call);
        let mut found = false;
        let mut hand_over = |clock, start: Option<u64>, end: Option<u64>, track| {
            let (Some(start), Some(end)) = (start, end) else { return };
            if start <= end {
                found = true;
                each(RawSlice { name, clock, start, end, chip, core: None, track, run });
            }
        };
        hand_over(Clock::Host, number(host_start), number(host_end), "host");
        if let Some(chip) = chip {
            hand_over(Clock::Chip(chip), number(start), number(end), "operations");
        }
        if let (Some(start), Some(end), Some(length @ 1..)) = (number(start), number(end), number(length)) {
            cycles += end.saturating_sub(start) as f64;
            nanoseconds += length as f64;
        }
        head.without_time += u64::from(!found);
    }
    head.gigahertz = (cycles > 0.0 && nanoseconds > 0.0).then(|| cycles / nanoseconds);
    Ok(head)
}

/// Whole numbers are sometimes written with a fraction, by pandas.
fn whole(text: &str) -> Option<u64> {
    let real = || text.parse::<f64>().ok().filter(|number| (0.0..1.8e19).contains(number)).map(|number| number as u64);
    text.parse().ok().or_else(real)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const REPORT: &str = "\
OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID,ATTRIBUTES,HOST START TS,HOST END TS,DEVICE FW START CYCLE,DEVICE FW END CYCLE,DEVICE FW DURATION [ns]
MatmulDeviceOperation,tt_dnn_device,1024,0,\"{'a': 'x,y'}\",1000,5000,7000000,7002000,2000
start,signpost,,,,,,,,
SoftmaxDeviceOperation,tt_dnn_device,2048.0,0,{},6000.0,6500,7003000,7003500,500
";

    #[test]
    fn an_operation_has_a_time_on_the_host_and_one_on_its_chip() {
        let mut text = String::new();
        let head = decode(REPORT.as_bytes(), |slice| {
            let RawSlice { name, clock, start, end, track, run, .. } = slice;
            text += &format!("{name} {clock:?} {start}..{end} {track} run {run:?}\n");
        });
        expect_test::expect![[r#"
            MatmulDeviceOperation Host 1000..5000 host run Some(1024)
            MatmulDeviceOperation Chip(0) 7000000..7002000 operations run Some(1024)
            SoftmaxDeviceOperation Host 6000..6500 host run Some(2048)
            SoftmaxDeviceOperation Chip(0) 7003000..7003500 operations run Some(2048)
        "#]]
        .assert_eq(&text);
        assert_eq!(head, Ok(OperationsReportHead { gigahertz: Some(1.0), without_time: 1 }));
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert_eq!(decode(&b"a,b\n1,2\n"[..], |_| ()), Err("line 1: expected a column \"OP CODE\"".into()));
        let empty = decode(&b"OP CODE\nx\n"[..], |_| panic!("it has no times")).unwrap();
        assert_eq!(empty, OperationsReportHead { gigahertz: None, without_time: 1 });
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(bytes: Vec<u8>, from: u64, to: f64) {
            let _ = decode(&bytes[..], |_| ());
            let text = REPORT.replace("7000000", &from.to_string()).replace("5000", &to.to_string());
            decode(text.as_bytes(), |slice| assert!(slice.start <= slice.end)).unwrap();
        }
    }
}

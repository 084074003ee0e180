//! What the cells say.

use crate::column::ProcessColumn;
use crate::paint::{Theme, Tone, columns_of};
use crate::rows::TableRow;
use model::{Bytes, Process};
use std::borrow::Cow;

/// A cell's text and what it is. The command is drawn elsewhere.
pub fn text<'a>(column: ProcessColumn, row: &'a TableRow, process: &'a Process, theme: &Theme) -> (Cow<'a, str>, Tone) {
    let glyphs = theme.glyphs();
    let absent = || (Cow::Borrowed(glyphs.absent), Tone::Faint);
    let plain = |text: Option<Cow<'a, str>>, tone| text.map_or_else(absent, |text| (text, tone));
    let bytes = |bytes: Option<Bytes>, partial: bool, tone: Tone| match bytes {
        None => absent(),
        // Of nothing and something unknown nothing is known.
        Some(Bytes(0)) if partial => absent(),
        Some(Bytes(0)) => (Cow::Borrowed("0"), Tone::Faint),
        Some(bytes) if partial => (Cow::Owned(format!("{}{}", glyphs.at_least, bytes.short())), tone),
        Some(bytes) => (Cow::Owned(bytes.short()), tone),
    };
    let used = |tone| bytes(column.part(&row.usage), column.is_partial(&process.devices), tone);
    match column {
        ProcessColumn::Devices => {
            plain(Some(Cow::Borrowed(row.devices.as_str())).filter(|text| !text.is_empty()), Tone::Plain)
        }
        ProcessColumn::Pid => (row.pid.to_string().into(), Tone::Strong),
        ProcessColumn::User => plain(process.user.as_deref().map(Cow::Borrowed), Tone::Plain),
        ProcessColumn::Container => plain(process.workload(), Tone::Plain),
        ProcessColumn::Dram => used(Tone::Strong),
        ProcessColumn::L1 | ProcessColumn::L1Small | ProcessColumn::Trace | ProcessColumn::Cb => used(Tone::Plain),
        ProcessColumn::Source => plain(row.source.map(Cow::Borrowed), Tone::Faint),
        // It keeps others from the device for nothing.
        ProcessColumn::Utilization if row.is_idle => (Cow::Borrowed("idle"), Tone::Warning),
        ProcessColumn::Utilization => plain(row.utilization.map(|known| known.text(glyphs).into()), Tone::Plain),
        ProcessColumn::Share => {
            let mark = if ProcessColumn::Dram.is_partial(&process.devices) { glyphs.at_least } else { "" };
            plain(row.share.map(|share| format!("{mark}{share:.1}%").into()), Tone::Plain)
        }
        ProcessColumn::Growth => match row.growth {
            None => absent(),
            Some(growth) if growth.abs() < 1.0 => (Cow::Borrowed("0"), Tone::Faint),
            Some(growth) => {
                let sign = if growth < 0.0 { '-' } else { '+' };
                (format!("{sign}{}/m", Bytes(growth.abs() as u64).short()).into(), Tone::Plain)
            }
        },
        ProcessColumn::Cpu => plain(process.host_cpu_percent.map(percent).map(Cow::Owned), Tone::Plain),
        ProcessColumn::HostMemory => bytes(process.host_memory, false, Tone::Plain),
        ProcessColumn::Age => plain(row.age_seconds.map(|age| duration(age).into()), Tone::Plain),
        ProcessColumn::Command => absent(),
    }
}

fn percent(value: f64) -> String {
    if value < 999.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// At most six characters: `12s`, `17m25s`, `3h02m`, `5d04h`, `400d`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        86400..8_640_000 => format!("{days}d{:02}h", hours % 24),
        _ => format!("{days}d"),
    }
}

/// So many columns of a text from one on, with a mark where something was cut off. A command line may be very long: no
/// more of it is looked at than is shown.
pub fn window(text: &str, from: usize, columns: usize, mark: char) -> String {
    let mut shown = String::new();
    if columns == 0 {
        return shown;
    }
    let (mut skipped, mut used) = (0, 0);
    for c in text.chars() {
        let wide = columns_of(c);
        if skipped < from {
            skipped += wide;
            continue;
        }
        if used + wide > columns {
            // The mark takes the place of the last character, or of what a wide one has left over.
            while used >= columns {
                let Some(last) = shown.pop() else { break };
                used -= columns_of(last);
            }
            shown.push(mark);
            break;
        }
        used += wide;
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_fit_their_column() {
        let texts = [0.4, 59.9, 60.0, 1045.0, 3600.0, 86_399.0, 450_000.0, 8_640_000.0, 4e9].map(duration);
        assert_eq!(texts, ["0s", "59s", "1m00s", "17m25s", "1h00m", "23h59m", "5d05h", "100d", "46296d"]);
    }

    #[test]
    fn a_command_is_seen_through_a_window() {
        assert_eq!(window("python3 serve.py", 0, 40, '~'), "python3 serve.py");
        assert_eq!(window("python3 serve.py", 0, 8, '~'), "python3~");
        assert_eq!(window("python3 serve.py", 8, 8, '~'), "serve.py");
        assert_eq!(window("python3 serve.py", 99, 8, '~'), "");
        assert_eq!(window("日本語の名前", 0, 6, '~'), "日本~");
        assert_eq!(window("日本語の名前", 2, 5, '~'), "本語~");
        assert_eq!(window("x", 0, 0, '~'), "");
    }

    proptest::proptest! {
        #[test]
        fn no_window_is_wider_than_its_frame(text in "\\PC*|.*", from in 0usize..20, columns in 0usize..20) {
            let shown = window(&text, from, columns, '~');
            let clean = show::text::clean(&shown);
            let wide: usize = clean.chars().map(columns_of).sum();
            assert!(wide <= columns, "{shown:?}");
        }
    }
}

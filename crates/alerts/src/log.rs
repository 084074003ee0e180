//! Log lines on standard error: `level=info event=started pid=7`. Under systemd the level is a prefix that its journal knows.

use std::fmt::Display;
use std::io::Write;
use std::sync::LazyLock;

/// Severity of a line, as syslog numbers it.
#[derive(Debug, Clone, Copy)]
pub enum LogLevel {
    Error = 3,
    Warning = 4,
    Info = 6,
}

static JOURNAL: LazyLock<bool> = LazyLock::new(|| std::env::var_os("JOURNAL_STREAM").is_some());

/// Writes a line. One that cannot be written is lost, and nothing waits for it.
pub fn log(level: LogLevel, event: &str, fields: &[(&str, &dyn Display)]) {
    let line = line(level, event, fields, *JOURNAL);
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn line(level: LogLevel, event: &str, fields: &[(&str, &dyn Display)], journal: bool) -> String {
    let mut line = match (journal, level) {
        (true, level) => format!("<{}>", level as u8),
        (false, LogLevel::Error) => "level=error ".into(),
        (false, LogLevel::Warning) => "level=warning ".into(),
        (false, LogLevel::Info) => "level=info ".into(),
    };
    line.push_str("event=");
    line.push_str(event);
    for (key, value) in fields {
        let value = value.to_string();
        let plain = |c: char| c.is_alphanumeric() || "-_./:@,+".contains(c);
        if !value.is_empty() && value.chars().all(plain) {
            line.push_str(&format!(" {key}={value}"));
        } else {
            line.push_str(&format!(" {key}={value:?}"));
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_keys_and_values() {
        let fields: [(&str, &dyn Display); 3] = [("pid", &7), ("command", &"a b\n\"c\""), ("path", &"/tmp/x.sock")];
        let text = r#"event=lie pid=7 command="a b\n\"c\"" path=/tmp/x.sock"#;
        assert_eq!(line(LogLevel::Warning, "lie", &fields, false), format!("level=warning {text}\n"));
        assert_eq!(line(LogLevel::Warning, "lie", &fields, true), format!("<4>{text}\n"));
    }
}

//! What standard output is.

use std::io::{self, IsTerminal};

/// True if standard output is a terminal.
pub fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether the terminal knows no escape sequences, as `TERM` says.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// True if the environment names UTF-8.
pub fn locale_is_utf8() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

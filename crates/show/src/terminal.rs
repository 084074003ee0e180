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

/// Whether there are colours where the command line does not say: on a terminal that knows them. NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE and
/// CLICOLOR say otherwise, in this order.
pub fn wants_color(is_terminal: bool) -> bool {
    chosen_color(|name| std::env::var(name).ok()).unwrap_or(is_terminal && !is_dumb())
}

/// What the environment says of colours, if anything.
fn chosen_color(variable: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match (set("NO_COLOR"), set("FORCE_COLOR"), set("CLICOLOR_FORCE"), set("CLICOLOR")) {
        (Some(_), ..) => Some(false),
        (None, Some(force), ..) => Some(force != "0"),
        (None, None, Some(force), _) if force != "0" => Some(true),
        (.., Some(color)) if color == "0" => Some(false),
        _ => None,
    }
}

/// Columns and rows of a terminal. One that does not know its size, as some containers' at their start, has what COLUMNS and LINES say, or
/// else 80×24.
pub fn known_size(columns: u16, rows: u16) -> (u16, u16) {
    let variable = |name: &str| std::env::var(name).ok()?.trim().parse::<u16>().ok();
    let known = |size: u16, name: &str, usual: u16| match size {
        0 => variable(name).filter(|size| *size > 0).unwrap_or(usual),
        size => size,
    };
    (known(columns, "COLUMNS", 80), known(rows, "LINES", 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_forces_colours_or_forbids_them() {
        let chosen = |all: &[(&str, &str)]| {
            chosen_color(|name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
        };
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[("NO_COLOR", ""), ("FORCE_COLOR", ""), ("CLICOLOR", "1"), ("CLICOLOR_FORCE", "0")]), None);
        assert_eq!(chosen(&[("FORCE_COLOR", "1")]), Some(true));
        assert_eq!(chosen(&[("FORCE_COLOR", "0")]), Some(false));
        assert_eq!(chosen(&[("CLICOLOR_FORCE", "1"), ("CLICOLOR", "0")]), Some(true));
        assert_eq!(chosen(&[("CLICOLOR", "0")]), Some(false));
        assert_eq!(chosen(&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")]), Some(false));
    }
}

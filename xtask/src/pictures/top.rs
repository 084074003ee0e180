//! `ttmon top` and `ttmon smi` as SVG: run in a pseudo-terminal on a simulated machine, and drawn cell by cell.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vt100::{Cell, Color, Screen};

/// Width and height of a cell, and where its baseline is.
const CELL: (f64, f64) = (8.4, 18.0);
const BASELINE: f64 = 13.5;
const MARGIN: f64 = 12.0;

/// What is run, in how many columns and rows, for how long, and where the picture goes.
struct Picture {
    file: &'static str,
    arguments: &'static [&'static str],
    size: (u16, u16),
    seconds: u64,
    title: &'static str,
}

const PICTURES: [Picture; 2] = [
    Picture {
        file: "docs/top.svg",
        arguments: &["top", "--sim=galaxy-bh,agent,hang=2@50s,seed=7"],
        size: (130, 40),
        seconds: 60,
        title: "ttmon top on a simulated Galaxy with 32 chips, one of which is hung",
    },
    Picture {
        file: "docs/smi.svg",
        arguments: &["smi", "--sim"],
        size: (80, 34),
        seconds: 5,
        title: "ttmon smi on a simulated machine with four p150a",
    },
];

pub fn run(program: &Path) -> anyhow::Result<()> {
    for picture in &PICTURES {
        let screen = watched(program, picture)?;
        std::fs::write(picture.file, svg(&screen, picture.title)).context(picture.file)?;
        println!("{}", picture.file);
    }
    Ok(())
}

/// What is on the screen after the time.
fn watched(program: &Path, picture: &Picture) -> anyhow::Result<Screen> {
    let (columns, rows) = picture.size;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave: OwnedFd = File::options().read(true).write(true).open(name.to_str()?)?.into();
    tcsetwinsize(&slave, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program).args(picture.arguments);
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("NO_COLOR");
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(Stdio::from(slave));
    let mut child = command.spawn().context("setsid is needed")?;
    drop(command);
    let mut terminal = File::from(master);
    let size = NonZeroU16::new(rows).zip(NonZeroU16::new(columns)).context("no size")?;
    let mut parser = vt100::Parser::new(size.0, size.1, 0);
    let until = Instant::now() + Duration::from_secs(picture.seconds);
    let mut buffer = vec![0; 1 << 16];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let wait = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        if poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&wait))? == 0 {
            break;
        }
        // A program that has ended has closed its side.
        let Ok(bytes @ 1..) = terminal.read(&mut buffer) else { break };
        parser.process(&buffer[..bytes]);
    }
    let screen = parser.screen().clone();
    // It takes its simulated machine down.
    terminal.write_all(b"q").ok();
    child.wait()?;
    Ok(screen)
}

fn svg(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let used = (0..rows).rev().find(|row| !line_is_blank(screen, *row, columns)).map_or(0, |row| row + 1);
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(used) * CELL.1 + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\" fill=\"#e6e6e6\">\n",
        escaped(title)
    );
    for row in 0..used {
        draw_row(screen, row, columns, &mut text);
    }
    text += "</g>\n</svg>\n";
    text
}

fn line_is_blank(screen: &Screen, row: u16, columns: u16) -> bool {
    (0..columns).filter_map(|column| screen.cell(row, column)).all(|cell| cell.contents().trim().is_empty())
}

/// Cells of one look are one text.
fn draw_row(screen: &Screen, row: u16, columns: u16, text: &mut String) {
    let mut column = 0;
    while column < columns {
        let Some(first) = screen.cell(row, column) else { break };
        let look = Look::of(first);
        let mut run = String::new();
        let begin = column;
        while let Some(cell) = screen.cell(row, column).filter(|cell| Look::of(cell) == look) {
            if !cell.is_wide_continuation() {
                run += if cell.has_contents() { cell.contents() } else { " " };
            }
            column += 1;
        }
        draw_run(&look, &run, (begin, row), column - begin, text);
    }
}

fn draw_run(look: &Look, run: &str, (column, row): (u16, u16), cells: u16, text: &mut String) {
    let (x, y) = (MARGIN + f64::from(column) * CELL.0, MARGIN + f64::from(row) * CELL.1);
    let width = f64::from(cells) * CELL.0;
    if let Some(ground) = &look.ground {
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{ground}\"/>",
            CELL.1
        );
    }
    let fill = look.ink.as_ref().map(|ink| format!(" fill=\"{ink}\"")).unwrap_or_default();
    let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
    // Blanks between words may be lost in an SVG: each word has its own place.
    let mut at = 0;
    for word in run.split(' ') {
        let letters = word.chars().count();
        if letters > 0 {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\"{fill}{weight}>{}</text>",
                x + at as f64 * CELL.0,
                y + BASELINE,
                letters as f64 * CELL.0,
                escaped(word)
            );
        }
        at += letters + 1;
    }
}

/// How a cell looks.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    ink: Option<String>,
    ground: Option<String>,
    bold: bool,
}

impl Look {
    fn of(cell: &Cell) -> Look {
        let (ink, ground) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
        let (ink, ground) = match cell.inverse() {
            true => (ground.or(Some("#16181d".into())), ink.or(Some("#e6e6e6".into()))),
            false => (ink, ground),
        };
        let ink = if cell.dim() && ink.is_none() { Some("#8a8f98".into()) } else { ink };
        Look { ink, ground, bold: cell.bold() }
    }
}

const BASIC: [&str; 16] = [
    "#16181d", "#e06c75", "#87d787", "#ffd75f", "#5fafff", "#c678dd", "#5fd7d7", "#d0d0d0", "#808080", "#ff5f5f",
    "#afffaf", "#ffffaf", "#87d7ff", "#ff87ff", "#87ffff", "#ffffff",
];

fn colour(color: Color) -> Option<String> {
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match color {
        Color::Default => None,
        Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
        Color::Idx(n @ 0..16) => Some(BASIC[usize::from(n)].to_owned()),
        Color::Idx(n @ 232..) => {
            let grey = 8 + 10 * (n - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
        Color::Idx(n) => {
            let n = n - 16;
            Some(format!("#{:02x}{:02x}{:02x}", level(n / 36), level(n / 6 % 6), level(n % 6)))
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_one_look_are_one_text_at_their_place() {
        let size = |n| NonZeroU16::new(n).unwrap();
        let mut parser = vt100::Parser::new(size(2), size(20), 0);
        parser.process(b"a<b \x1b[38;5;203mhung\x1b[0m\r\n\x1b[7mkey\x1b[0m");
        let text = svg(parser.screen(), "x & y");
        assert!(text.contains("<title>x &amp; y</title>") && text.contains(">a&lt;b</text>"), "{text}");
        assert!(text.contains("x=\"45.6\"") && text.contains("fill=\"#ff5f5f\">hung</text>"), "{text}");
        assert!(text.contains("fill=\"#16181d\">key</text>"), "{text}");
    }
}

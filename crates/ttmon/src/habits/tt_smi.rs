//! A program called `tt-smi`: the options of the official one, version 6.8, and those of the older programs `tt_smi` and `tt_smi_umd`.
//!
//! Words that are none of these are for `ttmon smi`.

use super::{Habit, HabitOption, found, listed};
use crate::screen::local_time;
use model::Timestamp;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What an option does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtSmiEffect {
    Help,
    Version,
    Snapshot,
    File,
    List,
    Trays,
    Watch,
    /// A reset; or, of the older programs, the milliseconds from one picture to the next.
    Reset,
    /// Nothing: it concerns what ttmon never does.
    Nothing,
}

const fn option(
    names: &'static [&'static str],
    value: &'static str,
    effect: TtSmiEffect,
    help: &'static str,
) -> HabitOption<TtSmiEffect> {
    HabitOption { names, value, effect, help }
}

/// All options. The page of habits has them from here.
#[rustfmt::skip]
pub const OPTIONS: &[HabitOption<TtSmiEffect>] = &[
    option(&["-h", "--help"], "", TtSmiEffect::Help, "Prints this list."),
    option(&["-v", "--version"], "", TtSmiEffect::Version, "Prints the version whose interface this is, and that of ttmon."),
    option(&["-s", "--snapshot"], "", TtSmiEffect::Snapshot, "Prints the JSON."),
    option(&["--snapshot_no_tty"], "", TtSmiEffect::Nothing, "The JSON is always plain: nothing to do."),
    option(&["-f", "--filename"], "[FILE]", TtSmiEffect::File, "Writes the JSON to FILE; - is standard output. Without FILE: to ~/tt_smi_logs, under the time."),
    option(&["-ls", "--list"], "", TtSmiEffect::List, "Lists the boards, and those that can be reset, in two tables. They are never cut to 80 columns."),
    option(&["-w", "--watch"], "[SECONDS]", TtSmiEffect::Watch, "Redraws the table, as the older programs tt_smi and tt_smi_umd do."),
    option(&["-r", "--reset"], "[TARGET...]", TtSmiEffect::Reset, "Refused: ttmon never resets a device. With -w, or as tt_smi: redraws every so many milliseconds."),
    option(&["-glx_reset", "--galaxy_6u_trays_reset"], "", TtSmiEffect::Reset, "Refused: ttmon never resets a device."),
    option(&["-glx_reset_auto", "--galaxy_6u_trays_reset_auto"], "", TtSmiEffect::Reset, "Refused: ttmon never resets a device."),
    option(&["-glx_list_tray_to_device", "--galaxy_6u_list_tray_to_device"], "", TtSmiEffect::Trays, "Lists the trays of a Galaxy with their devices."),
    option(&["-l", "--local"], "", TtSmiEffect::Nothing, "Chips without PCIe are never asked: nothing to do."),
    option(&["-c", "--compact"], "", TtSmiEffect::Nothing, "There is no sidebar: nothing to do."),
    option(&["--offline"], "", TtSmiEffect::Nothing, "ttmon asks no server for versions: nothing to do."),
    option(&["--no_reinit"], "", TtSmiEffect::Nothing, "For resets: nothing to do."),
    option(&["--use_luwen"], "", TtSmiEffect::Nothing, "ttmon needs neither luwen nor UMD: nothing to do."),
    option(&["--eth_train_skip"], "", TtSmiEffect::Nothing, "For resets: nothing to do."),
];

/// The version of the interface, with ours as a suffix that Python's version numbers allow.
pub const VERSION: &str = concat!("6.8.0+ttmon.", env!("CARGO_PKG_VERSION"));

/// What the words mean. An older program's `-r` is how often it redraws.
pub fn understood(arguments: &[OsString], is_older: bool) -> Habit {
    let watches = arguments.iter().any(|word| word == "-w" || word == "--watch");
    let mut asked: Vec<TtSmiEffect> = Vec::new();
    let (mut file, mut seconds, mut milliseconds) = (None, None, None);
    let mut others: Vec<OsString> = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(word) = rest.next() {
        let Some((option, inline)) = word.to_str().and_then(|word| found(OPTIONS, word)) else {
            others.push(word.clone());
            continue;
        };
        let is_number = |word: &&OsString| word.to_str().is_some_and(|word| word.parse::<f64>().is_ok());
        match option.effect {
            // What follows it may be a command.
            TtSmiEffect::Watch => seconds = inline.map(Into::into).or_else(|| rest.next_if(is_number).cloned()),
            TtSmiEffect::Reset if option.is("-r") && (is_older || watches) => {
                milliseconds = rest.next().and_then(|word| word.to_str()?.parse::<f64>().ok());
                continue;
            }
            TtSmiEffect::Reset => return refused(word, &option.values(inline, &mut rest)),
            TtSmiEffect::File => file = option.values(inline, &mut rest).pop(),
            _ => {}
        }
        asked.push(option.effect);
    }
    let is_asked = |effect| asked.contains(&effect);
    let mut words: Vec<OsString> = vec!["ttmon".into(), "smi".into()];
    let every = seconds.or(milliseconds.map(|ms| OsString::from((ms / 1000.0).to_string())));
    if is_asked(TtSmiEffect::Help) {
        return Habit::Text(help());
    } else if is_asked(TtSmiEffect::Version) {
        return Habit::Text(format!("{VERSION}\n"));
    } else if is_asked(TtSmiEffect::List) {
        words.push("--tt-smi-list".into());
    } else if is_asked(TtSmiEffect::Trays) {
        words.push("--tt-smi-trays".into());
    } else if is_asked(TtSmiEffect::Snapshot) || file.as_deref() == Some(OsStr::new("-")) {
        words.push("--tt-smi".into());
    } else if is_asked(TtSmiEffect::File) {
        let Some(name) = file.map(PathBuf::from).or_else(usual_file) else {
            return Habit::Refused("-f: HOME is not set, so there is no folder for the file: name one, -f FILE".into());
        };
        words.extend(["--tt-smi".into(), "--saved".into(), "--filename".into(), name.into()]);
    } else if is_asked(TtSmiEffect::Watch) {
        let mut watch = OsString::from("--watch");
        if let Some(every) = every {
            watch.push("=");
            watch.push(every);
        }
        words.push(watch);
    }
    words.extend(others);
    Habit::Words(words)
}

fn refused(option: &OsStr, targets: &[OsString]) -> Habit {
    let mut command = option.to_owned();
    for target in targets {
        command.push(" ");
        command.push(target);
    }
    Habit::Refused(format!(
        "{}: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi {}` (pip install tt-smi)",
        option.to_string_lossy(),
        command.to_string_lossy()
    ))
}

/// `~/tt_smi_logs/11-16-2026_12:30:00_results.json`
fn usual_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    Some(home.join("tt_smi_logs").join(local_time(now, "%m-%d-%Y_%H:%M:%S_results.json")))
}

/// The list of options.
pub fn help() -> String {
    format!(
        "This tt-smi is ttmon {}: it reads what the driver publishes and never opens a device.\n\n\
         Usage: tt-smi [OPTIONS]\n\n{}\n\
         All options of `ttmon smi` work, too; `ttmon smi --help` lists them.\n",
        env!("CARGO_PKG_VERSION"),
        listed(OPTIONS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').skip(1).map(Into::into).collect();
        match understood(&arguments, line.starts_with("tt_smi")) {
            Habit::Words(words) => words.join(OsStr::new(" ")).into_string().unwrap(),
            Habit::Text(text) => format!("prints {}", text.lines().next().unwrap_or_default()),
            Habit::Refused(why) => format!("refused: {why}"),
        }
    }

    #[test]
    fn every_option_has_a_meaning_here() {
        let lines = [
            "tt-smi",
            "tt-smi -h",
            "tt-smi -v",
            "tt-smi -s",
            "tt-smi --snapshot --snapshot_no_tty",
            "tt-smi -s --snapshot_no_tty --no_reinit",
            "tt-smi -f x/y.json",
            "tt-smi -f -",
            "tt-smi --filename=out.json --offline",
            "tt-smi -f - -s",
            "tt-smi -ls",
            "tt-smi --list --local",
            "tt-smi -l -c --offline --use_luwen --eth_train_skip",
            "tt-smi -glx_list_tray_to_device",
            "tt-smi -r",
            "tt-smi -r 0,1 --no_reinit",
            "tt-smi --reset 0000:0a:00.0",
            "tt-smi -r /dev/tenstorrent/0",
            "tt-smi -glx_reset",
            "tt-smi --galaxy_6u_trays_reset_auto",
            "tt-smi -w",
            "tt-smi -w 2",
            "tt-smi -w -r 500",
            "tt_smi -w -r 500",
            "tt_smi -r 500",
            "tt_smi_umd -w",
            "tt-smi --root x -s",
            "tt-smi -q -i 0",
            "tt-smi -s --sim=n300",
        ];
        let table: String = lines.map(|line| format!("{line}\n    {}\n", words(line))).concat();
        expect_test::expect![[r#"
            tt-smi
                ttmon smi
            tt-smi -h
                prints This tt-smi is ttmon 0.1.0: it reads what the driver publishes and never opens a device.
            tt-smi -v
                prints 6.8.0+ttmon.0.1.0
            tt-smi -s
                ttmon smi --tt-smi
            tt-smi --snapshot --snapshot_no_tty
                ttmon smi --tt-smi
            tt-smi -s --snapshot_no_tty --no_reinit
                ttmon smi --tt-smi
            tt-smi -f x/y.json
                ttmon smi --tt-smi --saved --filename x/y.json
            tt-smi -f -
                ttmon smi --tt-smi
            tt-smi --filename=out.json --offline
                ttmon smi --tt-smi --saved --filename out.json
            tt-smi -f - -s
                ttmon smi --tt-smi
            tt-smi -ls
                ttmon smi --tt-smi-list
            tt-smi --list --local
                ttmon smi --tt-smi-list
            tt-smi -l -c --offline --use_luwen --eth_train_skip
                ttmon smi
            tt-smi -glx_list_tray_to_device
                ttmon smi --tt-smi-trays
            tt-smi -r
                refused: -r: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi -r` (pip install tt-smi)
            tt-smi -r 0,1 --no_reinit
                refused: -r: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi -r 0,1` (pip install tt-smi)
            tt-smi --reset 0000:0a:00.0
                refused: --reset: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi --reset 0000:0a:00.0` (pip install tt-smi)
            tt-smi -r /dev/tenstorrent/0
                refused: -r: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi -r /dev/tenstorrent/0` (pip install tt-smi)
            tt-smi -glx_reset
                refused: -glx_reset: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi -glx_reset` (pip install tt-smi)
            tt-smi --galaxy_6u_trays_reset_auto
                refused: --galaxy_6u_trays_reset_auto: ttmon only watches and never resets a device: the official program does, with `python3 -m tt_smi --galaxy_6u_trays_reset_auto` (pip install tt-smi)
            tt-smi -w
                ttmon smi --watch
            tt-smi -w 2
                ttmon smi --watch=2
            tt-smi -w -r 500
                ttmon smi --watch=0.5
            tt_smi -w -r 500
                ttmon smi --watch=0.5
            tt_smi -r 500
                ttmon smi
            tt_smi_umd -w
                ttmon smi --watch
            tt-smi --root x -s
                ttmon smi --tt-smi --root x
            tt-smi -q -i 0
                ttmon smi -q -i 0
            tt-smi -s --sim=n300
                ttmon smi --tt-smi --sim=n300
        "#]].assert_eq(&table);
    }

    #[test]
    fn a_file_without_a_name_is_named_after_the_time() {
        let line = words("tt-smi -f");
        assert!(
            line.starts_with("ttmon smi --tt-smi --saved --filename /") && line.ends_with("_results.json"),
            "{line}"
        );
    }
}

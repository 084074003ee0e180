//! A program called `tt-nvtop`: the options of nvtop, as far as they make sense here.
//!
//! Words that are none of these are for `ttmon top`.

use super::{Habit, HabitOption, found, listed};
use std::ffi::OsString;

/// What an option does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvtopEffect {
    Help,
    Version,
    /// Tenths of a second.
    Delay,
    Snapshot,
    Loop,
    /// An option of `ttmon top`.
    Option(&'static str),
    /// Nothing, for the reason that its help has.
    Nothing,
}

const fn option(
    names: &'static [&'static str],
    value: &'static str,
    effect: NvtopEffect,
    help: &'static str,
) -> HabitOption<NvtopEffect> {
    HabitOption { names, value, effect, help }
}

/// All options. The page of habits has them from here.
#[rustfmt::skip]
pub const OPTIONS: &[HabitOption<NvtopEffect>] = &[
    option(&["-h", "--help"], "", NvtopEffect::Help, "Prints this list."),
    option(&["-v", "--version"], "", NvtopEffect::Version, "Prints the version."),
    option(&["-d", "--delay"], "TENTHS", NvtopEffect::Delay, "Tenths of a second from one sample to the next: 10 is a second."),
    option(&["-s", "--snapshot"], "", NvtopEffect::Snapshot, "Prints everything as JSON, once. It is the JSON of `ttmon smi`, with numbers and device ids."),
    option(&["-l", "--loop"], "", NvtopEffect::Loop, "Prints the JSON again and again, one object per line."),
    option(&["-C", "--no-color"], "", NvtopEffect::Option("--no-color"), "No colours."),
    option(&["-f", "--freedom-unit"], "", NvtopEffect::Option("--fahrenheit"), "Temperatures in °F."),
    option(&["-p", "--no-plot"], "", NvtopEffect::Option("--no-charts"), "No charts."),
    option(&["-P", "--no-processes"], "", NvtopEffect::Option("--no-processes"), "No list of processes."),
    option(&["-r", "--reverse-abs"], "", NvtopEffect::Option("--reversed"), "Charts: the newest value at the left."),
    option(&["-i", "--gpu-info"], "", NvtopEffect::Nothing, "Each device has all its figures anyway, with the key d: nothing to do. With a value, as in -i 0, it selects devices as everywhere in ttmon."),
    option(&["-E", "--encode-hide"], "SECONDS", NvtopEffect::Nothing, "The chips have no video encoder: nothing to do."),
    option(&["-c", "--config-file"], "FILE", NvtopEffect::Option("--config"), "The configuration file."),
];

/// What the words mean.
pub fn understood(arguments: &[OsString]) -> Habit {
    let (mut words, mut tenths): (Vec<OsString>, Option<f64>) = (Vec::new(), None);
    let (mut snapshots, mut loops) = (false, false);
    let mut rest = arguments.iter().peekable();
    while let Some(word) = rest.next() {
        let Some((option, inline)) = word.to_str().and_then(|word| found(OPTIONS, word)) else {
            words.push(word.clone());
            continue;
        };
        // With a value it is ttmon's own.
        if option.is("-i") && rest.peek().is_some_and(|next| !next.as_encoded_bytes().starts_with(b"-")) {
            words.extend([word.clone(), rest.next().cloned().unwrap_or_default()]);
            continue;
        }
        let values = option.values(inline, &mut rest);
        match option.effect {
            NvtopEffect::Help => return Habit::Text(help()),
            NvtopEffect::Version => return Habit::Text(concat!("ttmon ", env!("CARGO_PKG_VERSION"), "\n").into()),
            NvtopEffect::Delay => {
                tenths = values.first().and_then(|value| value.to_str()?.parse().ok()).filter(|tenths| *tenths > 0.0);
                if tenths.is_none() {
                    return Habit::Refused(format!(
                        "{}: expected tenths of a second, such as 10",
                        word.to_string_lossy()
                    ));
                }
            }
            NvtopEffect::Snapshot => snapshots = true,
            NvtopEffect::Loop => loops = true,
            NvtopEffect::Option(name) => {
                words.push(name.into());
                words.extend(values);
            }
            NvtopEffect::Nothing => {}
        }
    }
    let seconds = tenths.map(|tenths| (tenths / 10.0).to_string());
    let mut line: Vec<OsString> = vec!["ttmon".into()];
    if snapshots || loops {
        line.extend(["smi".into(), "--json".into()]);
        let every = seconds.unwrap_or_else(|| "1".into());
        line.extend(loops.then(|| OsString::from(format!("--loop={every}"))));
        words.retain(|word| word.to_str().is_none_or(|word| !OF_TOP.contains(&word)));
    } else {
        line.push("top".into());
        line.extend(seconds.map(|seconds| OsString::from(format!("--interval={seconds}"))));
    }
    line.extend(words);
    Habit::Words(line)
}

/// What is about pictures, and not about JSON.
const OF_TOP: [&str; 5] = ["--no-color", "--fahrenheit", "--no-charts", "--no-processes", "--reversed"];

/// The list of options.
pub fn help() -> String {
    format!(
        "This is ttmon {}, called as nvtop is.\n\nUsage: tt-nvtop [OPTIONS]\n\n{}\n\
         All options of `ttmon top` work, too; `ttmon top --help` lists them.\n",
        env!("CARGO_PKG_VERSION"),
        listed(OPTIONS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn every_option_has_a_meaning_here() {
        let words = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').skip(1).map(Into::into).collect();
            match understood(&arguments) {
                Habit::Words(words) => words.join(OsStr::new(" ")).into_string().unwrap(),
                Habit::Text(text) => format!("prints {}", text.lines().next().unwrap_or_default()),
                Habit::Refused(why) => format!("refused: {why}"),
            }
        };
        let lines = [
            "tt-nvtop",
            "tt-nvtop -h",
            "tt-nvtop -v",
            "tt-nvtop -d 5",
            "tt-nvtop --delay=20 -C",
            "tt-nvtop -d x",
            "tt-nvtop -d",
            "tt-nvtop -s",
            "tt-nvtop -s -l -d 5",
            "tt-nvtop -l",
            "tt-nvtop -i",
            "tt-nvtop -i -p",
            "tt-nvtop -i 0 -P",
            "tt-nvtop -f -r -E 30",
            "tt-nvtop -E -1 -c my.toml",
            "tt-nvtop --sim=n300 --read-only",
        ];
        let table: String = lines.map(|line| format!("{line}\n    {}\n", words(line))).concat();
        expect_test::expect![[r#"
            tt-nvtop
                ttmon top
            tt-nvtop -h
                prints This is ttmon 0.1.0, called as nvtop is.
            tt-nvtop -v
                prints ttmon 0.1.0
            tt-nvtop -d 5
                ttmon top --interval=0.5
            tt-nvtop --delay=20 -C
                ttmon top --interval=2 --no-color
            tt-nvtop -d x
                refused: -d: expected tenths of a second, such as 10
            tt-nvtop -d
                refused: -d: expected tenths of a second, such as 10
            tt-nvtop -s
                ttmon smi --json
            tt-nvtop -s -l -d 5
                ttmon smi --json --loop=0.5
            tt-nvtop -l
                ttmon smi --json --loop=1
            tt-nvtop -i
                ttmon top
            tt-nvtop -i -p
                ttmon top --no-charts
            tt-nvtop -i 0 -P
                ttmon top -i 0 --no-processes
            tt-nvtop -f -r -E 30
                ttmon top --fahrenheit --reversed
            tt-nvtop -E -1 -c my.toml
                ttmon top --config my.toml
            tt-nvtop --sim=n300 --read-only
                ttmon top --sim=n300 --read-only
        "#]]
        .assert_eq(&table);
    }
}

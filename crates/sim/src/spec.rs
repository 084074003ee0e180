//! What to simulate, in one line of text: `p150x4,hang=1@5s,seed=7`.

use crate::BoardKind;
use crate::counted::Counting;
use crate::past::PAST;
use model::text::did_you_mean;
use std::str::FromStr;
use std::time::Duration;

/// The machine of `--sim` alone: workloads with the agent, and a device that was hung for a while some minutes ago.
pub const DEFAULT_SPEC: &str = "p150x4,agent,hang=3@-4m,reset=3@-210s";

/// A machine, what happens to it, and the seed of everything that moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub(crate) boards: Boards,
    pub(crate) events: Vec<ScriptedFault>,
    pub(crate) seed: u64,
    pub(crate) idle: bool,
    /// Whether a workload keeps every device at full load.
    pub(crate) full: bool,
    /// Whether workloads run with ttmon's agent.
    pub(crate) agent: bool,
    pub(crate) counting: Counting,
    /// Whether device nodes have a telemetry table to read.
    pub(crate) deep: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boards {
    Alike(BoardKind, u32),
    Galaxy(BoardKind),
    Mixed,
}

/// Something that happens to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptedFault {
    pub what: FaultKind,
    pub device: u32,
    /// Milliseconds after the start. Less than zero: before it.
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Every read of the chip gives all-ones.
    Hang,
    /// The chip is reset, which takes a while.
    Reset,
    /// Its processes are killed.
    Kill,
    /// It leaves the bus.
    Lose,
    /// Its firmware stops, its sensors go on.
    Freeze,
    /// Reads from the chip wait forever.
    Stuck,
    /// Its cooling fails: it gets hot, its firmware lowers the clock, and at last it shuts down.
    Heat,
    /// Its processes take more memory than there is, and end with an error.
    Fill,
    /// Its processes take more and more memory.
    Leak,
    /// Its Ethernet links go down.
    LinkDown,
    /// A process of somebody else opens it and resets it.
    ForeignReset,
    /// A process of the resetting user ends.
    EndTool,
    /// The driver is unloaded. Its processes end before.
    Unload,
    /// The host has no memory left, and the kernel kills a process.
    HostOom,
}

/// What is wrong with a text that should have been a [`Spec`], in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

const KNOWN_MACHINES: &str = "known are galaxy-wh, galaxy-bh, mixed, and n150, n300, p100a, p150[a|b|c] and p300[a|b|c], alone or \
                              with xCOUNT behind";

/// As many as the driver's `max_devices`.
const MAX_DEVICES: u32 = 32;

impl Spec {
    /// PCI functions in the machine.
    pub fn devices(&self) -> u32 {
        match self.boards {
            Boards::Alike(kind, count) => kind.functions() * count,
            Boards::Galaxy(_) => 32,
            Boards::Mixed => 4,
        }
    }

    /// Words for completion: machines, and options that may follow them.
    pub fn words() -> impl Iterator<Item = String> {
        let machines = ["n150", "n300", "p100a", "p150", "p300", "galaxy-wh", "galaxy-bh", "mixed"];
        let switches = SWITCHES.iter().map(|(word, _)| *word);
        let events = WORDS.iter().map(|(_, word)| format!("{word}="));
        let events = events.chain(MACHINE_WORDS.iter().map(|(_, word)| format!("{word}@")));
        machines.into_iter().chain(switches).map(str::to_owned).chain(events).chain(["seed=".to_owned()])
    }

    /// The options that may follow the machine, for help and messages.
    pub fn options() -> String {
        let events = WORDS.iter().map(|(_, word)| format!("{word}=N@TIME"));
        let events = events.chain(MACHINE_WORDS.iter().map(|(_, word)| format!("{word}@TIME")));
        let switches = SWITCHES.iter().map(|(word, _)| (*word).to_owned());
        let mut all: Vec<String> = events.chain(["seed=NUMBER".to_owned()]).chain(switches).collect();
        let last = all.pop().unwrap_or_default();
        format!("{} and {last}", all.join(", "))
    }
}

impl Default for Spec {
    fn default() -> Spec {
        let boards = Boards::Alike(BoardKind::P150a, 4);
        Spec {
            boards,
            events: Vec::new(),
            seed: 0,
            idle: false,
            full: false,
            agent: false,
            counting: Counting::default(),
            deep: false,
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let mut words = text.split(',');
        let boards = boards(words.next().unwrap_or_default())?;
        let mut spec = Spec { boards, ..Spec::default() };
        for option in words {
            if let Some((_, switch)) = SWITCHES.iter().find(|(word, _)| *word == option) {
                *switch(&mut spec) = true;
                continue;
            }
            let of_machine = option.split_once('@').and_then(|(word, time)| {
                MACHINE_WORDS.iter().find(|(_, known)| *known == word).map(|(what, _)| (*what, time))
            });
            if let Some((what, time)) = of_machine {
                spec.events.push(ScriptedFault { what, device: 0, at: moment(what, option, time)? });
                continue;
            }
            match option.split_once('=') {
                Some(("seed", seed)) => {
                    let wrong = format!("{seed:?} is not a seed, which is a number from 0 to {}", u64::MAX);
                    spec.seed = seed.parse().map_err(|_| SpecError(wrong))?;
                }
                _ => {
                    let (word, rest) = option.split_once('=').unwrap_or((option, ""));
                    let what = WORDS.iter().find(|(_, known)| *known == word);
                    let unknown = || {
                        let words = WORDS.iter().chain(&MACHINE_WORDS).map(|(_, word)| *word);
                        let words = words.chain(SWITCHES.iter().map(|(word, _)| *word));
                        let near = did_you_mean(word, words.chain(["seed"]));
                        SpecError(format!("there is no option {option:?}: {near}known are {}", Spec::options()))
                    };
                    let (what, _) = *what.ok_or_else(unknown)?;
                    spec.events.push(event(what, option, rest, spec.devices())?);
                }
            }
        }
        Ok(spec)
    }
}

const WORDS: [(FaultKind, &str); 11] = [
    (FaultKind::Hang, "hang"),
    (FaultKind::Reset, "reset"),
    (FaultKind::Kill, "kill"),
    (FaultKind::Lose, "lose"),
    (FaultKind::Freeze, "freeze"),
    (FaultKind::Stuck, "stuck"),
    (FaultKind::Heat, "heat"),
    (FaultKind::Fill, "fill"),
    (FaultKind::Leak, "leak"),
    (FaultKind::LinkDown, "linkdown"),
    (FaultKind::ForeignReset, "otherreset"),
];

/// What happens to the machine, not to one device.
const MACHINE_WORDS: [(FaultKind, &str); 2] = [(FaultKind::Unload, "unload"), (FaultKind::HostOom, "hostoom")];

type Switch = fn(&mut Spec) -> &mut bool;

/// Words that switch something on.
const SWITCHES: [(&str, Switch); 8] = [
    ("idle", |spec| &mut spec.idle),
    ("full", |spec| &mut spec.full),
    ("agent", |spec| &mut spec.agent),
    ("deep", |spec| &mut spec.deep),
    ("fdinfo", |spec| &mut spec.counting.fdinfo),
    ("processes", |spec| &mut spec.counting.processes),
    ("memory", |spec| &mut spec.counting.memory),
    ("memory_stats", |spec| &mut spec.counting.memory_stats),
];

fn boards(machine: &str) -> Result<Boards, SpecError> {
    match machine {
        "mixed" => return Ok(Boards::Mixed),
        "galaxy-wh" => return Ok(Boards::Galaxy(BoardKind::GalaxyWormhole)),
        "galaxy-bh" => return Ok(Boards::Galaxy(BoardKind::GalaxyBlackhole)),
        _ => {}
    }
    let (name, count) = machine.split_once('x').unwrap_or((machine, "1"));
    let kind = match name {
        "n150" => BoardKind::N150,
        "n300" => BoardKind::N300,
        "p100a" => BoardKind::P100a,
        "p150" | "p150a" => BoardKind::P150a,
        "p150b" => BoardKind::P150b,
        "p150c" => BoardKind::P150c,
        "p300" | "p300a" => BoardKind::P300a,
        "p300b" => BoardKind::P300b,
        "p300c" => BoardKind::P300c,
        _ => return Err(SpecError(format!("there is no machine {machine:?}: {KNOWN_MACHINES}"))),
    };
    let wrong = || SpecError(format!("{count:?} in {machine:?} is not a number of boards, which is 1 or more"));
    let count = count.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
    if count > MAX_DEVICES / kind.functions() {
        let most = format!("{machine:?} has more than the {MAX_DEVICES} devices that the driver can drive");
        return Err(SpecError(most));
    }
    Ok(Boards::Alike(kind, count))
}

fn event(what: FaultKind, option: &str, rest: &str, devices: u32) -> Result<ScriptedFault, SpecError> {
    let incomplete = || SpecError(format!("{option:?} does not say which device and when, as in hang=0@5s"));
    let (device, time) = rest.split_once('@').ok_or_else(incomplete)?;
    let missing =
        || format!("there is no device {device:?} for {option:?}: this machine has {devices}, counted from 0");
    let index = device.parse().ok().filter(|n| *n < devices).ok_or_else(|| SpecError(missing()))?;
    Ok(ScriptedFault { what, device: index, at: moment(what, option, time)? })
}

fn moment(what: FaultKind, option: &str, time: &str) -> Result<i64, SpecError> {
    let wrong = || SpecError(format!("{time:?} in {option:?} is not a time such as 500ms, 5s or 1m"));
    let milliseconds = |time| duration(time).and_then(|time| i64::try_from(time.as_millis()).ok()).ok_or_else(wrong);
    let Some(before) = time.strip_prefix('-') else { return milliseconds(time) };
    let before = milliseconds(before)?;
    if !IN_THE_PAST.contains(&what) {
        return Err(SpecError(format!("{option:?}: before the start, only hang, reset, freeze and heat can happen")));
    }
    if before >= PAST.as_millis() as i64 {
        let seconds = PAST.as_secs();
        return Err(SpecError(format!("{time:?} in {option:?} is too early: the past has {seconds} seconds")));
    }
    Ok(-before)
}

/// What needs no process: none was there before the start.
const IN_THE_PAST: [FaultKind; 4] = [FaultKind::Hang, FaultKind::Reset, FaultKind::Freeze, FaultKind::Heat];

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn spec(text: &str) -> Spec {
        text.parse().unwrap()
    }

    #[test]
    fn every_word_for_completion_is_understood() {
        let (options, machines): (Vec<String>, Vec<String>) = Spec::words()
            .partition(|word| word.ends_with(['=', '@']) || SWITCHES.iter().any(|(switch, _)| switch == word));
        assert!(machines.iter().all(|machine| Spec::from_str(machine).is_ok()), "{machines:?}");
        let value = |option: &String| match option.as_str() {
            "seed=" => "1",
            event if event.ends_with('=') => "0@5s",
            event if event.ends_with('@') => "5s",
            _ => "",
        };
        let is_known = |option: &String| Spec::from_str(&format!("n150,{option}{}", value(option))).is_ok();
        assert!(options.iter().all(is_known), "{options:?}");
    }

    #[test]
    fn a_machine_is_a_board_and_a_count() {
        assert_eq!(spec("p150x4"), Spec::default());
        assert_eq!(spec("p150ax4"), Spec::default());
        assert_eq!(spec("n150").devices(), 1);
        assert_eq!(spec("n300x4").devices(), 4, "the second chip of an n300 is no device");
        assert_eq!(spec("p300bx16").devices(), 32);
        assert_eq!(spec("galaxy-wh").devices(), 32);
        assert_eq!(spec("mixed").devices(), 4);
    }

    #[test]
    fn options_follow_in_any_order() {
        let spec = spec("p300x2,idle,hang=3@500ms,seed=9,reset=0@1m");
        assert!(spec.idle);
        assert_eq!(spec.seed, 9);
        let hang = ScriptedFault { what: FaultKind::Hang, device: 3, at: 500 };
        let reset = ScriptedFault { what: FaultKind::Reset, device: 0, at: 60_000 };
        assert_eq!(spec.events, [hang, reset]);
    }

    #[test]
    fn some_faults_can_be_before_the_start() {
        let spec = spec(DEFAULT_SPEC);
        assert!(spec.agent && spec.events.iter().all(|event| event.at < 0), "{spec:?}");
        assert_eq!(spec.devices(), Spec::default().devices());
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence() {
        let check = |text: &str, sentence: Expect| {
            sentence.assert_eq(&text.parse::<Spec>().unwrap_err().to_string());
        };
        check(
            "",
            expect![[
                r#"there is no machine "": known are galaxy-wh, galaxy-bh, mixed, and n150, n300, p100a, p150[a|b|c] and p300[a|b|c], alone or with xCOUNT behind"#
            ]],
        );
        check(
            "p15x4",
            expect![[
                r#"there is no machine "p15x4": known are galaxy-wh, galaxy-bh, mixed, and n150, n300, p100a, p150[a|b|c] and p300[a|b|c], alone or with xCOUNT behind"#
            ]],
        );
        check("p150x0", expect![[r#""0" in "p150x0" is not a number of boards, which is 1 or more"#]]);
        check("p150x-1", expect![[r#""-1" in "p150x-1" is not a number of boards, which is 1 or more"#]]);
        check("p300x17", expect![[r#""p300x17" has more than the 32 devices that the driver can drive"#]]);
        check(
            "p150,explode=0@5s",
            expect![[
                r#"there is no option "explode=0@5s": known are hang=N@TIME, reset=N@TIME, kill=N@TIME, lose=N@TIME, freeze=N@TIME, stuck=N@TIME, heat=N@TIME, fill=N@TIME, leak=N@TIME, linkdown=N@TIME, otherreset=N@TIME, unload@TIME, hostoom@TIME, seed=NUMBER, idle, full, agent, deep, fdinfo, processes, memory and memory_stats"#
            ]],
        );
        check(
            "p150,busy",
            expect![[
                r#"there is no option "busy": known are hang=N@TIME, reset=N@TIME, kill=N@TIME, lose=N@TIME, freeze=N@TIME, stuck=N@TIME, heat=N@TIME, fill=N@TIME, leak=N@TIME, linkdown=N@TIME, otherreset=N@TIME, unload@TIME, hostoom@TIME, seed=NUMBER, idle, full, agent, deep, fdinfo, processes, memory and memory_stats"#
            ]],
        );
        check("p150,unload@5", expect![[r#""5" in "unload@5" is not a time such as 500ms, 5s or 1m"#]]);
        check(
            "p150,kill=0@-5s",
            expect![[r#""kill=0@-5s": before the start, only hang, reset, freeze and heat can happen"#]],
        );
        check("p150,hang=0@-5m", expect![[r#""-5m" in "hang=0@-5m" is too early: the past has 300 seconds"#]]);
        check("p150,hang", expect![[r#""hang" does not say which device and when, as in hang=0@5s"#]]);
        check("p150,hang=0", expect![[r#""hang=0" does not say which device and when, as in hang=0@5s"#]]);
        check(
            "p150x4,kill=4@5s",
            expect![[r#"there is no device "4" for "kill=4@5s": this machine has 4, counted from 0"#]],
        );
        check(
            "p150,lose=@5s",
            expect![[r#"there is no device "" for "lose=@5s": this machine has 1, counted from 0"#]],
        );
        check("p150,hang=0@5", expect![[r#""5" in "hang=0@5" is not a time such as 500ms, 5s or 1m"#]]);
        check("p150,hang=0@5h", expect![[r#""5h" in "hang=0@5h" is not a time such as 500ms, 5s or 1m"#]]);
        check("p150,seed=many", expect![[r#""many" is not a seed, which is a number from 0 to 18446744073709551615"#]]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_spec_or_one_sentence(
            text in r"(p150|n300x2|mixed|galaxy-bh|p300x17|[a-z0-9]{0,5})(,(hang|lose|seed|idle|fdinfo|processes|memory|memory_stats|deep)?=?[0-9@,ms\n é]{0,6}){0,3}|\PC{0,12}"
        ) {
            match text.parse::<Spec>() {
                Ok(spec) => prop_assert!((1..=MAX_DEVICES).contains(&spec.devices())),
                Err(error) => {
                    let sentence = error.to_string();
                    prop_assert!(!sentence.is_empty() && !sentence.contains('\n'), "{}", sentence);
                }
            }
        }
    }
}

//! `ttmon completions SHELL`: a script that completes commands, options and values: also devices, fields, sections, simulated
//! machines and topics, for which the script asks the program.

use super::topics::TOPICS;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use std::io::{self, Write};
use watch::args::MachineArgs;
use watch::exit::Exit;
use watch::machine::Machine;

#[derive(Debug, Clone, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", required_unless_present = "words")]
    pub shell: Option<CompletedShell>,
    /// Print the words of one kind that are known, one per line; the script asks for them
    #[arg(long, value_name = "KIND", hide = true)]
    pub words: Option<WordKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompletedShell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    PowerShell,
}

/// Words that are not in the definition of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordKind {
    Devices,
    DeviceFields,
    ProcessFields,
    Sections,
    Simulations,
    Topics,
}

pub fn run(machine: &MachineArgs, mut definition: Command, args: &CompletionsArgs) -> anyhow::Result<Exit> {
    if let Some(kind) = args.words {
        return words(machine, kind);
    }
    let shell = match args.shell {
        Some(CompletedShell::Zsh) => Shell::Zsh,
        Some(CompletedShell::Fish) => Shell::Fish,
        Some(CompletedShell::Elvish) => Shell::Elvish,
        Some(CompletedShell::PowerShell) => Shell::PowerShell,
        Some(CompletedShell::Bash) | None => Shell::Bash,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, "ttmon", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match shell {
        Shell::Zsh => with_zsh_values(&script),
        Shell::Fish => with_fish_values(&script),
        Shell::Bash => script.into_owned() + BASH_VALUES,
        // Commands and options; their scripts are for other systems, too.
        _ => script.into_owned(),
    };
    io::stdout().lock().write_all(script.as_bytes())?;
    Ok(Exit::Success)
}

/// Options whose values are not in the definition of the command line, and of which kind they are.
const VALUES: [(&str, &str); 6] = [
    ("query-device", "device-fields"),
    ("query-processes", "process-fields"),
    ("display", "sections"),
    ("id", "devices"),
    ("device", "devices"),
    ("sim", "simulations"),
];

/// Options by nvidia-smi's names, which clap's scripts leave out.
const OTHER_NAMES: [(&str, &str); 2] = [("query-device", "query-gpu"), ("query-processes", "query-compute-apps")];

/// A line of a script, and the same for the other name of its option, which stands between these.
fn by_both_names(line: &str, (before, after): (&str, &str)) -> String {
    let name = |name: &str| format!("{before}{name}{after}");
    let other = OTHER_NAMES.iter().find(|(ours, _)| line.contains(&name(ours)));
    let other = other.map(|(ours, nvidia)| line.replace(&name(ours), &name(nvidia)));
    format!("{line}{}", other.unwrap_or_default())
}

/// In zsh a line has the option, its help and what completes it: `'*--id=[…]:DEVICE:_default'`. One by its letter has the same help.
fn with_zsh_values(script: &str) -> String {
    let kind = |line: &str| {
        let has = |option: &str| line.contains(&format!("--{option}=["));
        let long = VALUES.iter().find(|(option, _)| has(option)).map(|(_, kind)| *kind);
        long.or_else(|| line.contains(":DEVICE:").then_some("devices"))
            .or_else(|| line.contains(":SECTION:").then_some("sections"))
            .or_else(|| line.starts_with("'*::words -- ").then_some("topics"))
    };
    let completed = |line: &str| match (kind(line), line.rsplit_once(":_default'")) {
        (Some(kind), Some((before, after))) => {
            by_both_names(&format!("{before}: _ttmon_list {kind}'{after}\n"), ("--", "=["))
        }
        _ => format!("{line}\n"),
    };
    let lines: String = script.lines().map(completed).collect();
    // The function comes before the end, which calls the completion.
    match lines.rfind("\nif [ \"$funcstack") {
        Some(end) => format!("{}{ZSH_VALUES}{}", &lines[..end], &lines[end..]),
        None => lines,
    }
}

/// In fish a line has the option, and `-r` where it takes a value.
fn with_fish_values(script: &str) -> String {
    let completed = |line: &str| {
        let kind = VALUES.iter().find(|(option, _)| line.contains(&format!(" -l {option} "))).map(|(_, kind)| kind);
        match kind.filter(|_| line.ends_with(" -r")) {
            Some(kind) => by_both_names(&format!("{line} -f -a \"(__ttmon_list {kind})\"\n"), (" -l ", " ")),
            None => format!("{line}\n"),
        }
    };
    script.lines().map(completed).collect::<String>() + FISH_VALUES
}

fn words(machine: &MachineArgs, kind: WordKind) -> anyhow::Result<Exit> {
    let words: Vec<String> = match kind {
        WordKind::Devices => {
            let mut machine = Machine::open(machine, false)?;
            let devices = machine.sample().devices;
            machine.leave();
            let names = |device: &model::Device| {
                [Some(device.id.to_string()), device.pci_address.as_ref().map(|address| address.0.to_string())]
            };
            devices.iter().flat_map(names).flatten().collect()
        }
        WordKind::DeviceFields => crate::smi::field_names(false),
        WordKind::ProcessFields => crate::smi::field_names(true),
        WordKind::Sections => crate::smi::section_names(),
        WordKind::Simulations => sim::Spec::words().collect(),
        WordKind::Topics => TOPICS.iter().map(|topic| topic.name.to_owned()).collect(),
    };
    let mut out = io::stdout().lock();
    words.iter().try_for_each(|word| writeln!(out, "{word}"))?;
    Ok(Exit::Success)
}

/// Completes the values of options whose words depend on the machine or on tables. A list may be separated by commas.
const BASH_VALUES: &str = r#"
# The words of one kind that begin with the last one of a list.
_ttmon_list() {
    local kind=$1 typed=$2 before=""
    case $typed in *,*) before=${typed%,*}, typed=${typed##*,} ;; esac
    COMPREPLY=($(compgen -P "$before" -W "$(ttmon completions --words "$kind" 2>/dev/null)" -- "$typed"))
    case $kind in topics) ;; *) compopt -o nospace 2>/dev/null ;; esac
}

_ttmon_values() {
    local typed=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}
    # bash splits at `=` and `:`.
    if [ "$typed" = "=" ]; then
        typed=""
    elif [ "$option" = "=" ]; then
        option=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case $option in
        --query-device|--query-gpu) _ttmon_list device-fields "$typed" ;;
        --query-processes|--query-compute-apps) _ttmon_list process-fields "$typed" ;;
        -i|--id) _ttmon_list devices "$typed" ;;
        --sim) _ttmon_list simulations "$typed" ;;
        -d|--display)
            case " ${COMP_WORDS[*]} " in
                *" -q "*|*" --query "*) _ttmon_list sections "$typed" ;;
                *" mem "*) _ttmon_list devices "$typed" ;;
                *) _ttmon "$1" "$typed" "$option" ;;
            esac ;;
        help)
            _ttmon "$@"
            COMPREPLY+=($(compgen -W "$(ttmon completions --words topics 2>/dev/null)" -- "$typed")) ;;
        *) _ttmon "$1" "$typed" "$option" ;;
    esac
}

complete -F _ttmon_values -o nosort -o bashdefault -o default ttmon
"#;

/// The same in zsh. A list may be separated by commas.
const ZSH_VALUES: &str = r#"
_ttmon_list() {
    local -a words
    words=(${(f)"$(ttmon completions --words $1 2>/dev/null)"})
    compset -P '*,'
    case $1 in
        topics) compadd -- $words ;;
        *) compadd -S '' -- $words ;;
    esac
}
"#;

/// The same in fish.
const FISH_VALUES: &str = r#"
# The words of one kind, behind what is typed of a list.
function __ttmon_list
    set -l typed (commandline -ct | string replace -r '^-[^=]*=' '')
    set -l before (string match -r '^.*,' -- $typed)
    for word in (ttmon completions --words $argv[1] 2>/dev/null)
        echo "$before$word"
    end
end

complete -c ttmon -n "__fish_ttmon_using_subcommand help" -f -a "(__ttmon_list topics)"
complete -c ttmon -n "__fish_ttmon_using_subcommand sim" -f -a "(__ttmon_list simulations)"
"#;

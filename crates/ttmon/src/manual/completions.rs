//! `ttmon completions SHELL`: a script that completes commands and options, and in bash also devices, fields, sections and topics.

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
}

/// Words that are not in the definition of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordKind {
    Devices,
    DeviceFields,
    ProcessFields,
    Sections,
    Topics,
}

pub fn run(machine: &MachineArgs, mut definition: Command, args: &CompletionsArgs) -> anyhow::Result<Exit> {
    if let Some(kind) = args.words {
        return words(machine, kind);
    }
    let shell = match args.shell {
        Some(CompletedShell::Zsh) => Shell::Zsh,
        Some(CompletedShell::Fish) => Shell::Fish,
        Some(CompletedShell::Bash) | None => Shell::Bash,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, "ttmon", &mut script);
    if shell == Shell::Bash {
        script.extend_from_slice(BASH_VALUES.as_bytes());
    }
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Success)
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
        -d|--display)
            case " ${COMP_WORDS[*]} " in
                *" -q "*|*" --query "*) _ttmon_list sections "$typed" ;;
                *" mem "*) _ttmon_list devices "$typed" ;;
                *) _ttmon "$@" ;;
            esac ;;
        help)
            _ttmon "$@"
            COMPREPLY+=($(compgen -W "$(ttmon completions --words topics 2>/dev/null)" -- "$typed")) ;;
        *) _ttmon "$@" ;;
    esac
}

complete -F _ttmon_values -o nosort -o bashdefault -o default ttmon
"#;

//! Man pages, completions and help on topics, as the programs that read them see them.

use crate::support::needs::has;
use crate::support::{Machine, TTMON, run, ttmon};
use expect_test::expect;
use std::path::Path;
use std::process::Command;

fn fails(arguments: &[&str]) -> String {
    let run = ttmon(arguments);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
    run.err
}

/// All man pages, by name.
fn pages(folder: &Path) -> Vec<(String, String)> {
    let mut command = Command::new(TTMON);
    let made = run(command.args(["man", folder.to_str().unwrap()]).env("SOURCE_DATE_EPOCH", "1790000000"));
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    let mut pages: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    pages.sort();
    pages
}

#[test]
fn each_command_has_a_man_page_with_all_sections() {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(&folder.path().join("new/man1"));
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for command in
        ["smi", "top", "mem", "ops", "run", "serve", "metrics", "record", "alerts", "config", "sim", "completions"]
    {
        assert!(names.contains(&format!("ttmon-{command}.1").as_str()), "{names:?}");
    }
    for (name, text) in &pages {
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{name} has no {section}");
        }
        let title = text.lines().next().unwrap();
        assert!(title.starts_with(".TH \"TTMON") && title.contains("\"2026-09-21\""), "{title}");
    }
    for section in ["FILES", "ENVIRONMENT"] {
        assert!(pages.iter().find(|(name, _)| name == "ttmon.1").unwrap().1.contains(&format!(".SH {section}\n")));
    }
}

#[test]
fn man_pages_are_the_same_each_time_and_have_no_date_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(pages(&folder.path().join("a")), pages(&folder.path().join("b")));
    let plain = folder.path().join("plain");
    let mut command = Command::new(TTMON);
    run(command.args(["man", plain.to_str().unwrap()]).env_remove("SOURCE_DATE_EPOCH"));
    let text = std::fs::read_to_string(plain.join("ttmon.1")).unwrap();
    assert!(text.starts_with(".TH \"TTMON\" \"1\" \"\" \"ttmon "), "{text}");
}

#[test]
fn man_and_mandoc_have_nothing_to_say_against_the_pages() {
    let test = "man_and_mandoc_have_nothing_to_say_against_the_pages";
    if !has(test, &["man", "mandoc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in pages(folder.path()) {
        let file = folder.path().join(&name);
        let lint = run(Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&file));
        assert_eq!((lint.code, lint.out.as_str(), lint.err.as_str()), (Some(0), "", ""), "{name}");
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(&file).env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8");
        let shown = run(&mut man);
        assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{name}");
        assert!(shown.out.contains("SYNOPSIS"), "{name}: {}", shown.out);
    }
}

/// What a shell offers for a line, of which the last word is being typed.
fn in_bash(script: &Path, line: &str, root: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let (last, before) = (words.last().unwrap(), words[words.len() - 2]);
    // bash gives `=` as a word of its own.
    let split: Vec<String> = words.iter().map(|word| word.replace('=', " = ").trim().to_owned()).collect();
    let words = split.join(" ");
    let program = format!(
        "source '{}'; ttmon() {{ '{TTMON}' \"$@\" --root '{root}'; }}
         COMP_WORDS=({words}{}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); COMP_LINE='{line}'
         $(complete -p ttmon | sed 's/.*-F \\([^ ]*\\).*/\\1/') ttmon '{last}' '{before}' 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        if last.is_empty() { " ''" } else { "" },
    );
    run(Command::new("bash").args(["--norc", "-c", &program])).out.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let machine = Machine::with(&[sim::tree::Chip::p150a(0), sim::tree::Chip::p150b(1)]);
    let script = machine.0.path().join("ttmon.bash");
    let made = ttmon(&["completions", "bash"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    std::fs::write(&script, made.out).unwrap();
    let offered = |line: &str| in_bash(&script, line, machine.root());
    assert_eq!(offered("ttmon ser"), ["serve"]);
    assert_eq!(offered("ttmon smi --query-p"), ["--query-processes"]);
    assert_eq!(offered("ttmon smi dm"), ["dmon"]);
    assert_eq!(offered("ttmon smi --color al"), ["always"]);
    assert_eq!(offered("ttmon smi --color=al"), ["always"]);
    assert_eq!(offered("ttmon smi --format=cs"), ["csv"]);
    assert_eq!(offered("ttmon smi --query-compute-apps=process_n"), ["process_name"]);
    assert_eq!(offered("ttmon smi --query-gpu=temperature.g"), ["temperature.gpu"]);
    assert_eq!(offered("ttmon smi --query-gpu=index,temperature.g"), ["index,temperature.gpu"]);
    assert_eq!(offered("ttmon smi -i "), ["0", "0000:01:00.0", "1", "0000:09:00.0"]);
    assert_eq!(offered("ttmon smi -q -d TEMP"), ["TEMPERATURE"]);
    assert_eq!(offered("ttmon help env"), ["environment"]);
    assert_eq!(offered("ttmon top --sim=n3"), ["n300"]);
    assert_eq!(offered("ttmon top --sim=n300,ag"), ["n300,agent"]);
    assert_eq!(offered("ttmon smi --by us"), ["user"]);
}

#[test]
fn elvish_and_powershell_have_scripts_with_all_commands() {
    for (shell, begins) in
        [("elvish", "set edit:completion:arg-completer[ttmon]"), ("powershell", "Register-ArgumentCompleter")]
    {
        let made = ttmon(&["completions", shell]);
        assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
        for text in [begins, "--query-device", "doctor"] {
            assert!(made.out.contains(text), "{shell}: {text}");
        }
    }
}

#[test]
fn zsh_and_fish_complete_commands_options_and_values() {
    let test = "zsh_and_fish_complete_commands_options_and_values";
    let folder = tempfile::tempdir().unwrap();
    if has(test, &["fish"]) {
        let script = folder.path().join("ttmon.fish");
        std::fs::write(&script, ttmon(&["completions", "fish"]).out).unwrap();
        let offered = |line: &str| {
            let program = format!("source {}; alias ttmon {TTMON}; complete -C '{line}'", script.display());
            let mut fish = Command::new("fish");
            fish.args(["--no-config", "-c", &program]).env("HOME", folder.path());
            run(&mut fish).out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(offered("ttmon ser"), ["serve"]);
        assert_eq!(offered("ttmon smi --query-p"), ["--query-processes"]);
        assert_eq!(offered("ttmon smi --by us"), ["user"]);
        assert_eq!(offered("ttmon smi --query-gpu temperature.g"), ["temperature.gpu"]);
        assert_eq!(offered("ttmon smi --query-compute-apps=process_n"), ["--query-compute-apps=process_name"]);
        assert_eq!(offered("ttmon smi --query-device index,temperature.g"), ["index,temperature.gpu"]);
        assert_eq!(offered("ttmon smi --query-device=energy"), ["--query-device=energy_joules_total"]);
        assert_eq!(offered("ttmon smi -q -d TEMP"), ["TEMPERATURE"]);
        assert_eq!(offered("ttmon top --sim=n300,ag"), ["--sim=n300,agent"]);
        assert_eq!(offered("ttmon help env"), ["environment"]);
    }
    if has(test, &["zsh"]) {
        std::fs::write(folder.path().join("_ttmon"), ttmon(&["completions", "zsh"]).out).unwrap();
        // What the completion system would be told, instead of a terminal.
        let program = format!(
            "fpath=({0} $fpath); autoload -Uz compinit; compinit -u -d {0}/dump; print ${{_comps[ttmon]}}; autoload +X _ttmon; whence -w _ttmon",
            folder.path().display()
        );
        let zsh = run(Command::new("zsh").args(["-f", "-c", &program]).env("HOME", folder.path()));
        assert_eq!(zsh.out, "_ttmon\n_ttmon: function\n", "{}", zsh.err);
        let script = folder.path().join("_ttmon");
        assert!(run(Command::new("zsh").args(["-n"]).arg(&script)).err.is_empty());
        let text = std::fs::read_to_string(&script).unwrap();
        for values in [
            ":FIELD: _ttmon_list device-fields'",
            ":FIELD: _ttmon_list process-fields'",
            ":SECTION: _ttmon_list sections'",
            ":DEVICE: _ttmon_list devices'",
            ":SPEC: _ttmon_list simulations'",
            "--query-gpu=[",
            "--query-compute-apps=[",
            ":WHOSE:(user job unit pod)'",
        ] {
            assert!(text.contains(values), "{values}");
        }
        let program = format!(
            "compdef() {{ :; }}; compset() {{ :; }}; compadd() {{ print -l -- \"$@\" }}; ttmon() {{ {TTMON} \"$@\" }}
             source {}; _ttmon_list sections",
            script.display()
        );
        let words = run(Command::new("zsh").args(["-f", "-c", &program]));
        assert!(words.out.ends_with("FIRMWARE\nRAW\nPIDS\n"), "{}{}", words.out, words.err);
    }
}

#[test]
fn help_explains_commands_and_topics() {
    let all = ttmon(&["help"]).out;
    assert!(all.starts_with("Monitor for Tenstorrent"), "{all}");
    for topic in [
        "devices",
        "fields",
        "sections",
        "filter",
        "rules",
        "keys",
        "settings",
        "sim",
        "tt-smi",
        "nvidia-smi",
        "nvtop",
        "exit-codes",
        "environment",
        "files",
    ] {
        assert!(all.contains(&format!("\n{topic}\n    ")), "{topic}: {all}");
        let help = ttmon(&["help", topic]);
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""), "{topic}");
        assert!(help.out.lines().count() > 5, "{topic}: {}", help.out);
    }
    assert_eq!(ttmon(&["help", "smi", "dmon"]).out, ttmon(&["smi", "dmon", "--help"]).out);
    assert_eq!(ttmon(&["smi", "help", "dmon"]).out, ttmon(&["smi", "dmon", "--help"]).out);
    assert!(ttmon(&["help", "mem"]).out.contains("Usage: ttmon mem"));
    expect![[r#"
        Exit codes

        0
            success
        1
            not healthy, or another error
        2
            invalid arguments
        4
            permission denied
        6
            no such device, or no device
        7
            a remote machine does not answer
        9
            the driver is not loaded
        15
            a device is hung or lost

        Some commands have more of their own: `ttmon help COMMAND` lists them.
    "#]]
    .assert_eq(&ttmon(&["help", "exit-codes"]).out);
}

#[test]
fn a_mistyped_word_is_one_sentence_with_the_nearest() {
    let machine = Machine::with(&[sim::tree::Chip::p150a(0)]);
    let smi = |words: &[&str]| {
        let run = ttmon(&[&["smi", "--root", machine.root()], words].concat());
        assert!([2, 6].contains(&run.code.unwrap()), "{words:?}");
        run.err
    };
    let said = [
        fails(&["serv"]),
        fails(&["help", "exitcodes"]),
        fails(&["smi", "--quiery-gpu=index"]),
        smi(&["-q", "-d", "TEMPRATURE"]),
        smi(&["-i", "0000:01:0.0"]),
        fails(&["--sim=p150x4,hung=1@5s"]),
        fails(&["why", "--pid", "train.py"]),
        fails(&["smi", "-l", "soon"]),
    ];
    expect![[r#"
        error: there is no command "serv": did you mean serve? `ttmon --help` lists all
        error: there is no command and no topic "exitcodes": did you mean exit-codes? `ttmon help` lists all
        error: there is no option --quiery-gpu: did you mean --query-gpu? `ttmon smi --help` lists all
        error: -d: "TEMPRATURE" is not a section: did you mean TEMPERATURE? they are IDENTITY, HEALTH, TEMPERATURE, POWER, CLOCK, UTILIZATION, PCIE, MEMORY, GDDR, ETHERNET, UNITS, FIRMWARE, RAW, PIDS
        error: no device is called "0000:01:0.0": did you mean 0000:01:00.0? there is 0
        error: --sim: there is no option "hung=1@5s": did you mean hang? known are hang=N@TIME, reset=N@TIME, kill=N@TIME, lose=N@TIME, freeze=N@TIME, stuck=N@TIME, heat=N@TIME, fill=N@TIME, leak=N@TIME, linkdown=N@TIME, otherreset=N@TIME, unload@TIME, hostoom@TIME, seed=NUMBER, idle, full, agent, deep, fdinfo, processes, memory and memory_stats
        error: --pid: invalid value "train.py": expected a whole number
        error: -l: invalid value "soon": expected a number of seconds from 0.01 to 86400
    "#]]
    .assert_eq(&said.concat());
    assert!(said.iter().all(|text| text.lines().count() == 1 && text.starts_with("error: ")), "{said:?}");
}

#[test]
fn what_is_missing_or_does_not_go_together_is_one_sentence() {
    let said = [
        fails(&["compare", "a"]),
        fails(&["compare"]),
        fails(&["record", "--deep"]),
        fails(&["smi", "--by", "user", "-q"]),
        fails(&["top", "--at", "9:00", "--from", "8:00"]),
        fails(&["smi", "-l", "1", "-l", "2"]),
        fails(&["serve", "--black-box"]),
        fails(&["record", "--from", "soon", "-o", "x"]),
    ];
    expect![[r#"
        error: <B> is missing: `ttmon compare --help` shows how it is used
        error: <A> and <B> are missing: `ttmon compare --help` shows how it is used
        error: --output <FILE> is missing: `ttmon record --help` shows how it is used
        error: --by cannot be used with -q
        error: --at cannot be used with --from
        error: -l can be given once only
        error: --black-box needs a value: `ttmon serve --help` shows which
        error: --from: "soon" is not a time: expected a time such as 14:05, "yesterday 14:05", "2026-11-15 14:05:30" or "20m ago"
    "#]]
    .assert_eq(&said.concat());
    assert!(said.iter().all(|text| text.lines().count() == 1 && text.starts_with("error: ")), "{said:?}");
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let machine = Machine::with(&[sim::tree::Chip::p150a(0)]);
    let on_terminal = |words: &str| {
        let line = format!("exec {TTMON} {words} --root {}", machine.root());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "dumb").env("LANG", "C.UTF-8");
        run(script.env_remove("NO_COLOR"))
    };
    for words in
        ["smi", "smi -w 0.1 -c 2", "", "mem --once", "smi --help", "help", "smi -q", "smi dmon -c 1", "smi --nothing"]
    {
        let out = on_terminal(words).out;
        assert!(!out.contains('\x1b') && !out.is_empty(), "{words}: {out:?}");
    }
    assert!(on_terminal("smi --color=always").out.contains('\x1b'), "what is asked for on the command line wins");
    let top = on_terminal("top");
    assert_eq!(top.code, Some(2));
    assert_eq!(
        top.out.trim_end(),
        "error: `ttmon top` needs a terminal that can move its cursor, and TERM is dumb: use `ttmon smi -l 1`"
    );
}

#[test]
fn the_settings_are_printed_where_there_is_no_home() {
    let mut command = Command::new(TTMON);
    let print = run(command.args(["config", "print"]).env_remove("HOME").env_remove("XDG_CONFIG_HOME"));
    assert_eq!((print.code, print.err.as_str()), (Some(0), ""));
    assert!(print.out.starts_with("[top]\n"), "{}", print.out);
}

//! Environment variables, files and examples. Help, man pages and docs/reference.md have them from here.

use std::fmt::Write;
use watch::exit::Exit;

/// A variable or a file, what it does, and the commands that it concerns; none means all.
pub struct Entry {
    pub name: &'static str,
    pub text: &'static str,
    pub commands: &'static [&'static str],
}

impl Entry {
    pub fn concerns(&self, command: Option<&str>) -> bool {
        command.is_none_or(|command| self.commands.is_empty() || self.commands.contains(&command))
    }
}

const fn entry(name: &'static str, text: &'static str, commands: &'static [&'static str]) -> Entry {
    Entry { name, text, commands }
}

/// The variables that programs of this project read.
#[rustfmt::skip]
pub const ENVIRONMENT: &[Entry] = &[
    entry("NO_COLOR", "No colours, unless --color=always asks for them.", &["smi", "top", "mem", "ops"]),
    entry("TERM", "A terminal of the kind `dumb` gets no escape sequences; `ttmon top` needs another one.", &["smi", "top", "mem", "ops"]),
    entry("LC_ALL, LC_CTYPE, LANG", "Where they name no UTF-8 locale, tables and charts are drawn in ASCII.", &["smi", "top", "mem", "ops"]),
    entry("COLUMNS", "How wide a table is where the output is no terminal, such as a pipe or a file; 80 columns without it.", &["smi", "mem", "ops", "why"]),
    entry("TZ", "The time zone of the times that are printed.", &["smi", "mem", "why"]),
    entry("XDG_CONFIG_HOME, HOME", "Where the user's configuration is: $XDG_CONFIG_HOME/ttmon/config.toml, or $HOME/.config/ttmon/config.toml.", &["top", "smi", "serve", "alerts", "config", "health", "doctor", "record", "why", "export", "compare"]),
    entry("XDG_RUNTIME_DIR", "Where the socket of a user's own service is.", &["smi", "top", "mem", "ops", "run", "serve", "record", "metrics", "alerts", "health", "doctor", "why", "export", "compare"]),
    entry("XDG_STATE_HOME", "Where the black box of a user's own service is: $XDG_STATE_HOME/ttmon/black-box, or $HOME/.local/state/ttmon/black-box.", &["why", "top", "serve", "record", "export", "compare", "doctor"]),
    entry("TMPDIR", "Where simulated machines are kept while they run.", &[]),
    entry("TTMON_AGENT", "The agent inside a process: off disables it, on lets it count, reads also lets it read counters of open devices (the default of `ttmon run`).", &["run"]),
    entry("XDG_CACHE_HOME", "Where `ttmon run` unpacks its agent: $XDG_CACHE_HOME/ttmon, or $HOME/.cache/ttmon.", &["run"]),
    entry("TTMON_AGENT_LIB", "The path of libttmon_agent.so, instead of the places where `ttmon run` looks for it.", &["run"]),
    entry("TTMON_BOOK_SOCKET", "The socket of the service that the agent hands its book to; off means none.", &["run"]),
    entry("TTMON_TIMELINE", "Set by `ttmon run --timeline`: the agent keeps each program that ran, for 4 MiB more in its book.", &["run"]),
    entry("TTMON_ROOT", "For the agent's C and Python functions: a folder to read instead of the machine's, as --root.", &[]),
    entry("TT_METAL_SHM_TRACKING_DISABLED", "Of tt-metal: programs then count no memory in /dev/shm. `ttmon doctor` warns of it.", &["doctor"]),
    entry("VIRTUAL_ENV, CONDA_PREFIX, PATH", "Which Python `ttmon doctor` looks at. It runs none.", &["doctor"]),
    entry("LD_PRELOAD", "`ttmon run` puts the agent before what is in it.", &["run"]),
    entry("NOTIFY_SOCKET, LISTEN_FDS, LISTEN_PID", "Set by systemd: where the service reports that it is ready, and the sockets that were opened for it.", &["serve"]),
    entry("JOURNAL_STREAM", "Set by systemd: log lines then have the journal's priorities.", &["serve"]),
    entry("http_proxy, https_proxy, all_proxy, no_proxy", "The proxy for http:// URLs, for https:// URLs, for both, and hosts, domains and networks that are asked without one, as in curl. Also in capitals, except for HTTP_PROXY. This machine itself is never asked through a proxy.", &["smi", "top", "mem", "serve", "alerts"]),
    entry("SOURCE_DATE_EPOCH", "The date in the man pages, in seconds since 1970; without it they have none.", &["man"]),
];

/// The files that ttmon reads or makes.
#[rustfmt::skip]
pub const FILES: &[Entry] = &[
    entry("~/.config/ttmon/config.toml", "The user's configuration: settings of `ttmon top`, rules and receivers of alerts, limits of the service. `ttmon config path` prints where it is.", &["top", "smi", "serve", "alerts", "config", "health", "doctor"]),
    entry("/etc/ttmon/config.toml", "The machine's configuration: for the service of root, and for users without a file of their own.", &["smi", "serve", "alerts"]),
    entry("/run/ttmon/ttmon.sock", "The socket of the service of root.", &["smi", "top", "mem", "ops", "run", "serve", "record", "metrics", "alerts", "health", "doctor"]),
    entry("$XDG_RUNTIME_DIR/ttmon.sock", "The socket of a user's own service.", &["smi", "top", "mem", "ops", "run", "serve", "record", "metrics", "alerts", "health", "doctor"]),
    entry("~/.cache/ttmon", "The agent of `ttmon run`, unpacked. It can be removed at any time.", &["run"]),
    entry("/tmp/tt_allocation_server.sock", "The socket for programs that report to tt-metal's allocation_server_poc.", &["serve"]),
    entry("/sys/class/tenstorrent", "Devices and their telemetry, from the driver. It is read, never written.", &["smi", "top", "mem", "serve", "record", "metrics"]),
    entry("/proc/driver/tenstorrent", "Processes that have a device open.", &["smi", "top", "mem", "serve", "record", "metrics"]),
    entry("/dev/shm/tt_device_*_memory", "tt-metal's own counts of device memory.", &["smi", "top", "mem", "serve", "record", "metrics"]),
];

/// A command line, what it does, and the command whose page has it.
pub struct Example {
    pub command: &'static str,
    pub line: &'static str,
    pub text: &'static str,
}

const fn example(command: &'static str, line: &'static str, text: &'static str) -> Example {
    Example { command, line, text }
}

/// At least one for each command.
#[rustfmt::skip]
pub const EXAMPLES: &[Example] = &[
    example("smi", "ttmon smi", "All devices and processes, once."),
    example("smi", "ttmon smi -w", "The same, redrawn every second."),
    example("smi", "ttmon smi -q -d TEMPERATURE,POWER -i 0", "Two sections of everything that is known of device 0."),
    example("smi", "ttmon smi --query-gpu=index,power.draw,memory.used --format=csv,noheader", "Values for a script."),
    example("smi", "ttmon smi dmon -c 5", "Five lines per device, one each second."),
    example("top", "ttmon top", "Devices, charts and processes on the whole terminal."),
    example("top", "ttmon top --replay night.ttmon", "A recording, as if it were now."),
    example("mem", "ttmon mem -d 0", "Where the memory of device 0 went, live."),
    example("mem", "ttmon mem --json", "All of it for a program."),
    example("ops", "ttmon ops 4711", "The operations that process 4711 has launched."),
    example("run", "ttmon run -- python3 train.py", "Run a program and print what it used."),
    example("run", "ttmon run --leaks -- pytest test_model.py", "Fail with exit code 3 where device memory is left allocated."),
    example("run", "ttmon run --timeline run.pftrace -- python3 model.py", "Also write every program that ran, for ui.perfetto.dev."),
    example("serve", "ttmon serve", "Serve this machine at http://127.0.0.1:9746."),
    example("metrics", "ttmon metrics --textfile /var/lib/prometheus/node-exporter/ttmon.prom", "Metrics for the textfile collector of node_exporter."),
    example("record", "ttmon record -o night.ttmon --for 8h", "Record for eight hours."),
    example("record", "ttmon record --dump night.ttmon", "Print a recording as JSON, one sample per line."),
    example("compare", "ttmon compare before.json after.json", "Two receipts of `ttmon run --json`, side by side."),
    example("compare", "ttmon compare monday.ttmon @14:00..15:00", "A recording, and an hour of the black box."),
    example("export", "ttmon export night.ttmon -o night.pftrace", "A recording for ui.perfetto.dev."),
    example("export", "ttmon export --from 14:00 --to 14:30 -o incident.json.gz", "Half an hour of the black box for Chrome's trace viewer or Tracy."),
    example("why", "ttmon why", "The story of the last incident."),
    example("why", "ttmon why -i 2 --replay night.ttmon", "That of device 2 in a recording."),
    example("alerts", "ttmon alerts check", "Check rules and receivers in the configuration."),
    example("alerts", "ttmon alerts export --prometheus", "The rules as a file for Prometheus."),
    example("health", "ttmon health --require p150x4 --max-temp 85", "Exit code 0 where four p150 cards are well, and none is hotter than 85 °C."),
    example("doctor", "ttmon doctor", "Is this machine set up well, and what is to be typed where it is not?"),
    example("doctor", "ttmon doctor --bundle report.tar.gz", "The same, and a file for a bug report, without secrets."),
    example("config", "ttmon config print", "All settings of `ttmon top`, with explanations."),
    example("sim", "ttmon sim p150x4", "A machine with four p150 cards, until Ctrl-C."),
    example("help", "ttmon help filter", "How to filter processes."),
    example("completions", "ttmon completions bash", "Write to ~/.local/share/bash-completion/completions/ttmon to have it in every shell."),
    example("man", "ttmon man ~/.local/share/man/man1", "Write all man pages to a folder, where `man ttmon-smi` finds them."),
    example("ttmon", "ttmon", "The monitor on a terminal, a table elsewhere."),
    example("ttmon", "ttmon --sim", "Try it without a device: a simulated machine."),
    example("ttmon", "ttmon --host lab-1,lab-2", "Two other machines, on which `ttmon serve` runs."),
    example("ttmon", "ttmon --ssh lab-3 smi", "Another machine over ssh."),
];

/// The exit codes, one per line, as names and meanings.
pub fn exit_codes() -> Vec<(String, &'static str)> {
    Exit::ALL.iter().map(|(exit, text)| ((*exit as u8).to_string(), *text)).collect()
}

/// Names and meanings, one above the other.
pub fn listed<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, meaning) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}\n    {meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// What is read by tests, by systemd's side of things or by Cargo, and is no matter of users.
    const INTERNAL: [&str; 5] =
        ["OUT_DIR", "TTMON_TEST_PANIC", "TTMON_WIRE_VERSION", "TT_METAL_INSPECTOR", "TT_METAL_MOCK_CLUSTER_DESC_PATH"];

    #[test]
    fn every_variable_that_is_read_is_described() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut read = BTreeSet::new();
        let mut folders = vec![crates];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap() {
                let file = file.unwrap().path();
                let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                if file.is_dir() && !["tests", "harness", "target"].contains(&&*name) {
                    folders.push(file);
                } else if name.ends_with(".rs") {
                    let text = std::fs::read_to_string(&file).unwrap();
                    for call in ["env::var(\"", "env::var_os(\"", "absolute(\""] {
                        let names = text.split(call).skip(1).filter_map(|rest| rest.split('"').next());
                        read.extend(names.map(str::to_owned));
                    }
                }
            }
        }
        let described: BTreeSet<&str> = ENVIRONMENT.iter().flat_map(|entry| entry.name.split(", ")).collect();
        let known = |name: &&String| described.contains(name.as_str()) || INTERNAL.contains(&name.as_str());
        assert!(read.len() > 10, "{read:?}");
        assert_eq!(read.iter().filter(|name| !known(name)).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    #[test]
    fn the_reference_page_is_written_from_the_tables() {
        let table = |rows: &[(String, &str)]| {
            let row = |(name, text): &(String, &str)| format!("| `{name}` | {text} |\n");
            format!("| | |\n|---|---|\n{}", rows.iter().map(row).collect::<String>())
        };
        let entries = |entries: &'static [Entry]| {
            let rows: Vec<_> = entries.iter().map(|entry| (entry.name.replace(", ", "`, `"), entry.text)).collect();
            table(&rows)
        };
        let page = format!(
            "# Exit codes, environment, files\n\n\
             This page is written from the tables that `ttmon help`, the man pages and this page share:\n\
             `UPDATE_EXPECT=1 cargo test -p ttmon reference` writes it.\n\n\
             ## Exit codes\n{}\nSome commands have more of their own: `ttmon help COMMAND` lists them.\n\n\
             ## Environment\n{}\n## Files\n{}",
            table(&exit_codes()),
            entries(ENVIRONMENT),
            entries(FILES)
        );
        expect_file!["../../../../docs/reference.md"].assert_eq(&page);
    }
}

//! More about one process, for a view of it alone: its `TT_*` environment, limits and parents, from `/proc/<pid>/`.

use crate::clock::Clock;
use crate::procs::{Stat, stat};
use model::Timestamp;

/// What is not in every sample.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct About {
    /// Variables of Tenstorrent's software, or that load a library. Absent where they may not be read.
    pub environment: Option<Vec<(String, String)>>,
    /// Limits that programs on devices run into, each with its soft limit.
    pub limits: Vec<(String, String)>,
    /// Its parent, the parent's parent and so on: pid and name.
    pub parents: Vec<(u32, String)>,
    /// Where it runs.
    pub folder: Option<String>,
    /// How many threads it has.
    pub threads: Option<u32>,
}

/// Limits that are worth a line.
const LIMITS: [&str; 4] = ["Max locked memory", "Max open files", "Max address space", "Max processes"];
/// Beginnings of the variables' names.
const VARIABLES: [&str; 7] = ["TT_", "TTNN_", "TTMON_", "ARCH_NAME", "WH_", "VLLM_", "LD_PRELOAD"];

/// Reads what there is to know of a process.
pub fn about(pid: u32) -> About {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}"));
    let text = |file: &str| read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    About {
        environment: read("environ").ok().map(|bytes| variables(&bytes)),
        limits: limits(&text("limits")),
        parents: parents(pid),
        folder: std::fs::read_link(format!("/proc/{pid}/cwd")).ok().map(|path| path.to_string_lossy().into_owned()),
        threads: text("status").lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok()),
    }
}

/// When the process that has this pid now began.
pub fn started_at(pid: u32) -> Option<Timestamp> {
    Some(Clock::now().timestamp(stat_of(pid)?.start_ticks))
}

/// Which start of the machine this is, as the kernel numbers them.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

fn stat_of(pid: u32) -> Option<Stat> {
    stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The variables of interest, in the order of their names.
pub fn variables(environ: &[u8]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = environ
        .split(|byte| *byte == 0)
        .filter_map(|word| {
            let at = word.iter().position(|byte| *byte == b'=')?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(&word[..at]), text(&word[at + 1..])))
        })
        .filter(|(name, _)| VARIABLES.iter().any(|beginning| name.starts_with(beginning)))
        .collect();
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    all
}

/// The limits of interest of a `limits` file: name, soft limit and unit.
pub fn limits(text: &str) -> Vec<(String, String)> {
    let soft = |line: &str, name: &str| {
        let mut words = line.strip_prefix(name)?.split_ascii_whitespace();
        let (soft, _hard, unit) = (words.next()?, words.next()?, words.next().unwrap_or(""));
        Some((name.trim_start_matches("Max ").to_owned(), format!("{soft} {unit}").trim_end().to_owned()))
    };
    LIMITS.iter().filter_map(|name| text.lines().find_map(|line| soft(line, name))).collect()
}

fn parents(mut pid: u32) -> Vec<(u32, String)> {
    let mut parents = Vec::new();
    while parents.len() < 32 {
        let Some(parent) = stat_of(pid).and_then(|stat| stat.parent) else { break };
        parents.push((parent, stat_of(parent).map_or("?".into(), |stat| stat.name)));
        pid = parent;
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_variables_of_tenstorrents_software_are_shown() {
        let environ = b"HOME=/root\0TT_METAL_HOME=/opt/tt=metal\0SECRET_TOKEN=x\0LD_PRELOAD=a.so\0TT_BROKEN\0";
        let all = variables(environ);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(all, [pair("LD_PRELOAD", "a.so"), pair("TT_METAL_HOME", "/opt/tt=metal")]);
    }

    #[test]
    fn limits_are_read_by_their_names() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 524288               files     \n\
                    Max locked memory         8388608              unlimited            bytes     \n";
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(limits(text), [pair("locked memory", "8388608 bytes"), pair("open files", "1024 files")]);
    }

    #[test]
    fn this_very_process_has_parents_limits_and_a_beginning() {
        let all = about(std::process::id());
        assert_eq!(all.parents.last().map(|(pid, _)| *pid), Some(1), "{all:?}");
        assert!(!all.limits.is_empty() && all.threads.is_some() && all.folder.is_some() && all.environment.is_some());
        assert!(started_at(std::process::id()).is_some());
        assert_eq!(about(u32::MAX), About::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_somehow(bytes: Vec<u8>, text: String) {
            variables(&bytes);
            limits(&text);
        }
    }
}

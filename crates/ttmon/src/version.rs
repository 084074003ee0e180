//! `ttmon --version --verbose`: what this program is made of.

use crate::built_in_agent;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use watch::sha256;

/// What the agent recognises, as the table in README has it.
const TTNN: &str = "0.66 to 0.81 (0.78.0 and 0.81.1 are tested with every change)";

/// The oldest and the newest release of it.
pub const RECOGNISED: ((u32, u32), (u32, u32)) = ((0, 66), (0, 81));

/// Whether the command line asks for it. `--version` alone is one line.
pub fn is_asked_for(arguments: &[OsString]) -> bool {
    let is = |word: &OsString, names: &[&str]| names.iter().any(|name| word == name);
    let [_, one, two] = arguments else { return false };
    let is_both = |version, verbose| is(version, &["--version", "-V"]) && is(verbose, &["--verbose"]);
    is_both(one, two) || is_both(two, one)
}

/// The whole answer.
pub fn verbose() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let glibc = beginning_of_program().ok().and_then(|bytes| needed_glibc(&bytes));
    let agent = built_in_agent::bytes();
    let mut text = format!("ttmon {}\n", env!("CARGO_PKG_VERSION"));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<9} {value}");
    };
    line("commit", env!("TTMON_COMMIT"));
    line("target", concat!(env!("TTMON_TARGET"), ", ", env!("TTMON_PROFILE")));
    line("compiler", env!("TTMON_RUSTC"));
    line("glibc", &glibc.map_or("not needed".into(), |(major, minor)| format!("{major}.{minor} or later")));
    line(
        "agent",
        &match (&agent, built_in_agent::packed_bytes()) {
            (Some(agent), _) => describe(agent),
            (None, 0) => "not inside; expected beside the program".into(),
            (None, _) => "not inside; in the Python package".into(),
        },
    );
    line("ttnn", TTNN);
    line("includes", &format!("rustls, SQLite {}, zstd", rusqlite::version()));
    if let Some(python) = python(&program) {
        line("python", &python);
    }
    text
}

fn describe(agent: &[u8]) -> String {
    let (packed, sum) = (built_in_agent::packed_bytes(), sha256::hex(agent));
    format!("{} inside, {} bytes ({packed} compressed), SHA-256 {sum}", env!("CARGO_PKG_VERSION"), agent.len())
}

/// The names of what a program needs come first in its file: the rest, large in a debug build, need not be searched.
fn beginning_of_program() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open("/proc/self/exe")?.take(1 << 18).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The newest version of glibc that a program or library names: the oldest on which it can be loaded.
fn needed_glibc(file: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"\0GLIBC_";
    let versions = file.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME).filter_map(|(at, _)| {
        let rest = &file[at + NAME.len()..];
        let version = std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()?;
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max()
}

/// For a program that pip installed: whether its agent is active.
fn python(program: &Path) -> Option<String> {
    let environment = program.parent()?.parent()?;
    let versions = std::fs::read_dir(environment.join("lib")).ok()?.flatten();
    let is_python = |name: &OsString| name.to_string_lossy().starts_with("python3");
    let mut packages =
        versions.filter(|entry| is_python(&entry.file_name())).map(|entry| entry.path().join("site-packages"));
    let packages = packages.find(|packages| packages.join("ttmon.pth").is_file())?;
    let environment = environment.display();
    Some(if packages.join("ttnn").is_dir() || packages.join("ttnn.pth").is_file() {
        format!("the agent is on in programs of {environment} that import ttnn")
    } else {
        format!("{environment} has no ttnn: only this command is used")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_for_by_two_words() {
        let asks = |line: &str| is_asked_for(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("ttmon --version --verbose") && asks("ttmon --verbose -V"));
        assert!(!asks("ttmon --version") && !asks("ttmon --verbose") && !asks("ttmon run --version --verbose"));
    }

    #[test]
    fn the_newest_symbol_decides_which_glibc_is_needed() {
        let of = |text: &str| needed_glibc(text.as_bytes());
        assert_eq!(of("\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0GCC_3.0\0"), Some((2, 17)));
        assert_eq!(of("\0GLIBC_PRIVATE\0x"), None);
        assert_eq!(of("GLIBC_2.40"), None, "the text of a message is not a symbol");
        assert_eq!(of("\0GLIBC_"), None);
    }

    #[test]
    fn the_python_package_says_whether_the_agent_is_active() {
        let top = tempfile::tempdir().unwrap();
        let program = top.path().join("bin/ttmon");
        let packages = top.path().join("lib/python3.12/site-packages");
        std::fs::create_dir_all(&packages).unwrap();
        assert_eq!(python(&program), None);
        std::fs::write(packages.join("ttmon.pth"), "").unwrap();
        assert!(python(&program).unwrap().ends_with(" has no ttnn: only this command is used"));
        std::fs::create_dir(packages.join("ttnn")).unwrap();
        assert!(python(&program).unwrap().starts_with("the agent is on in programs of "));
    }
}

//! The release build for an old glibc: with the libraries of that version, which scripts/old-glibc makes.

use super::output;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest for which Rust's standard library is made.
pub const GLIBC: (u32, u32) = (2, 17);
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What was built, and from what.
pub struct Built {
    pub version: String,
    pub target: PathBuf,
    pub program: PathBuf,
    pub agent: PathBuf,
    /// Of the last commit, in seconds: the date of all files.
    pub epoch: String,
}

impl Built {
    /// Builds in `dist` of a target folder.
    pub fn new(top: &Path, folder: PathBuf) -> anyhow::Result<Built> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => {
                output(Command::new("git").current_dir(top).args(["log", "-1", "--format=%ct"]))?.trim().to_owned()
            }
        };
        let tools = output(Command::new(top.join("scripts/old-glibc")).arg(format!("{}.{}", GLIBC.0, GLIBC.1)))?;
        let tools = Path::new(tools.trim());
        let target = std::path::absolute(folder)?.join("dist");
        let built = target.join(TARGET).join("release");
        let (program, agent) = (built.join("ttmon"), built.join("libttmon_agent.so"));
        let cargo = |package: &str| -> anyhow::Result<Command> {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.current_dir(top).args([
                "build",
                "--release",
                "--locked",
                "--quiet",
                "--target",
                TARGET,
                "-p",
                package,
            ]);
            cargo.arg("--target-dir").arg(&target).envs(environment(top, tools, &epoch)?);
            Ok(cargo)
        };
        run(&mut cargo("ttmon-agent")?)?;
        run(cargo("ttmon")?.env("TTMON_BUILT_AGENT", &agent))?;
        Ok(Built { version: env!("CARGO_PKG_VERSION").into(), target, program, agent, epoch })
    }
}

/// Compilers, and no path of this machine in what they make.
fn environment(top: &Path, tools: &Path, epoch: &str) -> anyhow::Result<Vec<(String, String)>> {
    let text = |path: &Path| path.to_str().map(str::to_owned).with_context(|| format!("{} is no text", path.display()));
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"));
    let sources = [(text(top)?, "/ttmon"), (home.context("neither CARGO_HOME nor HOME is set")?, "/cargo")];
    let join = |option: &str, separator: &str| {
        let all = sources.iter().map(|(from, to)| format!("{option}={from}={to}"));
        all.collect::<Vec<_>>().join(separator)
    };
    let (lower, upper) = (TARGET.replace('-', "_"), TARGET.replace('-', "_").to_uppercase());
    let c = join("-ffile-prefix-map", " ");
    Ok(vec![
        (format!("CC_{lower}"), text(&tools.join("cc"))?),
        (format!("CXX_{lower}"), text(&tools.join("c++"))?),
        (format!("CFLAGS_{lower}"), c.clone()),
        (format!("CXXFLAGS_{lower}"), c),
        (format!("CARGO_TARGET_{upper}_LINKER"), text(&tools.join("gcc"))?),
        // Blanks in a path are no separators here.
        ("CARGO_ENCODED_RUSTFLAGS".into(), join("--remap-path-prefix", "\x1f")),
        ("SOURCE_DATE_EPOCH".into(), epoch.into()),
        ("CARGO_INCREMENTAL".into(), "0".into()),
    ])
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The newest version of glibc whose symbols a program or library needs.
pub fn needed_glibc(file: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"\0GLIBC_";
    let versions = file.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME).filter_map(|(at, _)| {
        let name = file[at + NAME.len()..].split(|byte| *byte == 0).next()?;
        let mut numbers = std::str::from_utf8(name).ok()?.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    versions.max()
}

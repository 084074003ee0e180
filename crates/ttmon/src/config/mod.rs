//! `ttmon config`, and the file that it is about: `$XDG_CONFIG_HOME/ttmon/config.toml`.

mod file;

use crate::alerts;
use crate::cli::{ConfigArgs, ConfigCommand};
use crate::exit::{Exit, Failure};
use crate::replace::replace_file;
use crate::top::settings::Settings;
pub use file::{Problem, line_of};
use rustix::process::geteuid;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let path = path(args.config.as_deref())?;
    let mut out = io::stdout().lock();
    match args.command {
        ConfigCommand::Path => writeln!(out, "{}", path.display())?,
        ConfigCommand::Print => {
            let (settings, problems) = load(&path);
            out.write_all(file::print(&settings).as_bytes())?;
            out.flush()?;
            problems.iter().for_each(|problem| eprintln!("ttmon: {}", said(&path, problem)));
        }
        ConfigCommand::Check => {
            if !path.exists() {
                writeln!(out, "{}: there is no such file, so everything is as usual", path.display())?;
                return Ok(Exit::Success);
            }
            let (_, mut problems) = load(&path);
            problems
                .extend(alerts::load(&path).1.into_iter().filter(|one| !problems.contains(one)).collect::<Vec<_>>());
            problems.sort_by_key(|problem| problem.line);
            if let [first, rest @ ..] = &problems[..] {
                rest.iter().rev().for_each(|problem| eprintln!("ttmon: {}", said(&path, problem)));
                return Err(Failure::error(Exit::Usage, said(&path, first)));
            }
            writeln!(out, "{}: all is well", path.display())?;
        }
    }
    Ok(Exit::Success)
}

/// Where the file is: where it was said to be, or where such files are.
pub fn path(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let why =
        "neither XDG_CONFIG_HOME nor HOME is set, so there is no place for a configuration: name one with --config";
    folder.map(|folder| folder.join("ttmon/config.toml")).ok_or_else(|| Failure::error(Exit::Usage, why))
}

/// The file of the whole machine.
const OF_THE_MACHINE: &str = "/etc/ttmon/config.toml";

/// Where rules and receivers are, and the service's limits: where it was said; for the service of root in the machine's file; else in the
/// user's, and in the machine's where the user has none.
pub fn place(named: Option<&Path>, for_service: bool) -> anyhow::Result<PathBuf> {
    let of_the_machine = PathBuf::from(OF_THE_MACHINE);
    // HOME may still be that of somebody else: `setpriv`, `su` and containers leave it as it was.
    let is_out_of_reach =
        |path: &Path| path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    match path(named) {
        Ok(path) if named.is_some() => Ok(path),
        _ if for_service && geteuid().is_root() => Ok(of_the_machine),
        Ok(path) if path.exists() || !(of_the_machine.exists() || is_out_of_reach(&path)) => Ok(path),
        _ => Ok(of_the_machine),
    }
}

/// What the file chooses. One that is not there chooses nothing; one that cannot be read is a problem, and no more.
pub fn load(path: &Path) -> (Settings, Vec<Problem>) {
    match std::fs::read_to_string(path) {
        Ok(text) => file::parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Settings::default(), Vec::new()),
        Err(error) => (Settings::default(), vec![Problem { line: 0, what: format!("cannot be read: {error}") }]),
    }
}

/// Writes the settings into the file, and nothing else. The reason when that cannot be done; the file is then as it was.
pub fn save(path: &Path, settings: &Settings) -> Result<(), String> {
    let failed = |error: io::Error| format!("not saved: {}: {error}", path.display());
    // A file that is a link stays one.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let text = match std::fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let text = file::with(&text, settings)
        .map_err(|problem| format!("not saved, since the file would be lost: {}", said(path, &problem)))?;
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    replace_file(&target, text.as_bytes()).map_err(failed)
}

/// A problem in one sentence.
pub fn said(path: &Path, problem: &Problem) -> String {
    match problem.line {
        0 => format!("{} {}", path.display(), problem.what),
        line => format!("{}:{line}: {}", path.display(), problem.what),
    }
}

//! The configuration: where its file is, and the rules and receivers of alerts in it.

use crate::exit::{Exit, Failure};
use alerts::Problem;
use alerts::settings::{self, AlertSettings};
use rustix::process::geteuid;
use std::io;
use std::path::{Path, PathBuf};

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

/// A problem in one sentence.
pub fn said(path: &Path, problem: &Problem) -> String {
    match problem.line {
        0 => format!("{} {}", path.display(), problem.what),
        line => format!("{}:{line}: {}", path.display(), problem.what),
    }
}

/// Rules and receivers of a file; the built-in rules where there is none. Each mistake is named, the first one last.
pub fn read_alerts(file: &Path) -> anyhow::Result<AlertSettings> {
    let (settings, problems) = load_alerts(file);
    if let [first, rest @ ..] = &problems[..] {
        rest.iter().rev().for_each(|problem| eprintln!("ttmon: {}", said(file, problem)));
        return Err(Failure::error(Exit::Usage, said(file, first)));
    }
    Ok(settings)
}

/// The rules of the user's file, or those that are built in. What is wrong with the file is told by `ttmon alerts check`.
pub fn alerts_of_user(named: Option<&Path>) -> AlertSettings {
    place(named, false).map(|file| load_alerts(&file).0).unwrap_or_default()
}

/// The same, with what is wrong beside what is right.
pub fn load_alerts(file: &Path) -> (AlertSettings, Vec<Problem>) {
    match std::fs::read_to_string(file) {
        Ok(text) => settings::parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (AlertSettings::default(), Vec::new()),
        Err(error) => {
            let what = format!("cannot be read: {error}");
            (AlertSettings::default(), vec![Problem { line: 0, what }])
        }
    }
}

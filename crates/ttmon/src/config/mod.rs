//! `ttmon config`, and the file that it is about: `$XDG_CONFIG_HOME/ttmon/config.toml`.

mod file;

use crate::cli::{ConfigArgs, ConfigCommand};
use crate::top::settings::Settings;
use alerts::Problem;
use std::io::{self, Write};
use std::path::Path;
use watch::atomic_file::replace_file;
use watch::config::{load_alerts, path, said};
use watch::exit::{Exit, Failure};

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
            problems.extend(load_alerts(&path).1.into_iter().filter(|one| !problems.contains(one)).collect::<Vec<_>>());
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

//! `ttmon config`, and the file that it is about: `$XDG_CONFIG_HOME/ttmon/config.toml`.

use clap::Subcommand;
use std::io::{self, Write};
use std::path::PathBuf;
use watch::config::{path, said};
use watch::exit::{Exit, Failure, say};

#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
    /// The file; $XDG_CONFIG_HOME/ttmon/config.toml, unless named
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Print all that can be chosen, as it is now, with explanations
    Print,
    /// Print where the file is
    Path,
    /// Name everything in the file that is not understood
    Check,
}

pub fn run(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let path = match path(args.config.as_deref()) {
        Ok(path) => path,
        // Without a folder for the file there are the defaults.
        Err(_) if matches!(args.command, ConfigCommand::Print) => {
            out.write_all(top::config::print(&top::config::defaults()).as_bytes())?;
            return Ok(Exit::Success);
        }
        Err(error) => return Err(error),
    };
    match args.command {
        ConfigCommand::Path => writeln!(out, "{}", path.display())?,
        ConfigCommand::Print => {
            let (settings, problems) = top::config::load(&path);
            out.write_all(top::config::print(&settings).as_bytes())?;
            out.flush()?;
            problems.iter().for_each(|problem| say(format_args!("ttmon: {}", said(&path, problem))));
        }
        ConfigCommand::Check => {
            if let Some(Err(error)) = args.config.as_ref().map(std::fs::metadata) {
                return Err(Failure::error(Exit::Usage, format!("--config {}: {error}", path.display())));
            }
            if !path.exists() {
                writeln!(out, "{}: not found; using the defaults", path.display())?;
                return Ok(Exit::Success);
            }
            let (_, problems) = top::config::load(&path);
            if let [first, rest @ ..] = &problems[..] {
                rest.iter().rev().for_each(|problem| say(format_args!("ttmon: {}", said(&path, problem))));
                return Err(Failure::error(Exit::Usage, said(&path, first)));
            }
            writeln!(out, "{}: ok", path.display())?;
        }
    }
    Ok(Exit::Success)
}

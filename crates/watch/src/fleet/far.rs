//! One other machine, in the place of this one; and how machines that the command line names are begun with.

use super::http::{PATIENCE, Service};
use super::watch::{Watch, Ways};
use super::{HostView, place, prometheus};
use crate::args::MachineArgs;
use crate::exit::{Exit, Failure};
use alerts::http::{Http, HttpOptions};
use model::{Host, SCHEMA, Snapshot, Timestamp};
use std::time::Duration;

/// Another machine that can be sampled.
pub struct Far {
    watch: Watch,
    /// How its service is asked for more, where it has one.
    service: Option<(Http, String)>,
    host: Option<HostView>,
}

/// How long is waited for an answer, with some time to connect to a machine over ssh.
pub const LONGEST: Duration = Duration::from_secs(20);

/// Begins to watch the machines that the command line names.
pub fn watch(args: &MachineArgs, interval: Duration) -> anyhow::Result<Watch> {
    Ok(Watch::start(ways(args)?, interval)?)
}

/// The machines that the command line names.
pub fn ways(args: &MachineArgs) -> anyhow::Result<Ways> {
    if !args.ssh.is_empty() {
        return Ok(Ways::Ssh { hosts: place::ssh(&args.ssh)?, push: args.push });
    }
    let ask =
        |options: &HttpOptions| Http::new(options).map_err(|error| Failure::error(Exit::Usage, format!("{error:#}")));
    if let Some(url) = &args.prometheus {
        let http = ask(&HttpOptions { timeout: prometheus::PATIENCE, ..options(args) })?;
        return Ok(Ways::Prometheus(prometheus::Source::at(url, http)?));
    }
    let http = ask(&options(args))?;
    Ok(Ways::Http(place::http(&args.host)?, http))
}

fn options(args: &MachineArgs) -> HttpOptions {
    HttpOptions { timeout: PATIENCE, ca: args.ca.clone(), token_file: args.token_file.clone() }
}

impl Far {
    /// The machine that the command line names.
    pub fn open(args: &MachineArgs) -> anyhow::Result<Far> {
        let ways = ways(args)?;
        let service = match &ways {
            Ways::Http(places, http) => places.first().map(|place| (http.clone(), place.base.clone())),
            Ways::Prometheus(_) | Ways::Ssh { .. } => None,
        };
        Ok(Far { watch: Watch::start(ways, Duration::from_secs(1))?, service, host: None })
    }

    /// What it tells now, or told last. Nothing but its name when it never answered.
    pub fn sample(&mut self) -> Snapshot {
        self.host = self.watch.round(LONGEST).hosts.into_iter().next();
        let told = self.host.as_ref().and_then(HostView::aged);
        told.unwrap_or_else(|| Snapshot {
            schema: SCHEMA,
            taken_at: Timestamp(0),
            host: Host::default(),
            devices: Vec::new(),
            processes: Vec::new(),
            faults: Vec::new(),
            alerts: Vec::new(),
        })
    }

    /// What is known of it besides.
    pub fn host(&self) -> Option<&HostView> {
        self.host.as_ref()
    }

    /// Its service, when it answers.
    pub fn service(&self) -> Option<Service<'_>> {
        let answers = self.host.as_ref().is_some_and(|host| host.trouble().is_none());
        self.service.as_ref().filter(|_| answers).map(|(http, base)| Service { http, base })
    }
}

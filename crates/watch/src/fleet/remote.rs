//! One other machine, used in place of this one; and the machines that the command line names.

use super::http::{PATIENCE, RemoteService};
use super::watcher::{FleetSource, FleetWatcher};
use super::{HostView, place, prometheus};
use crate::args::MachineArgs;
use crate::exit::{Exit, Failure};
use alerts::http::{Http, HttpOptions};
use model::Snapshot;
use std::time::Duration;

/// One other machine.
pub struct RemoteMachine {
    watch: FleetWatcher,
    /// How its service is asked for more, where it has one.
    service: Option<RemoteService>,
    host: Option<HostView>,
}

/// How long is waited for an answer, with some time to connect to a machine over ssh.
pub const LONGEST: Duration = Duration::from_secs(20);

/// Starts to watch the machines that the command line names.
pub fn watch(args: &MachineArgs, interval: Duration) -> anyhow::Result<FleetWatcher> {
    Ok(FleetWatcher::start(fleet_source(args)?, interval)?)
}

/// The source that the command line names.
pub fn fleet_source(args: &MachineArgs) -> anyhow::Result<FleetSource> {
    if !args.ssh.is_empty() {
        return Ok(FleetSource::Ssh { hosts: place::ssh(&args.ssh)?, push: args.push });
    }
    let http = |timeout| {
        let client = args.client_cert.clone().zip(args.client_key.clone());
        let options = HttpOptions { timeout, ca: args.ca.clone(), token_file: args.token_file.clone(), client };
        Http::new(&options).map_err(|error| Failure::error(Exit::Usage, format!("{error:#}")))
    };
    match &args.prometheus {
        Some(url) => Ok(FleetSource::Prometheus(prometheus::Prometheus::at(url, http(prometheus::PATIENCE)?)?)),
        None => Ok(FleetSource::Http(place::http(&args.host)?, http(PATIENCE)?)),
    }
}

impl RemoteMachine {
    /// The machine that the command line names.
    pub fn open(args: &MachineArgs) -> anyhow::Result<RemoteMachine> {
        let fleet_source = fleet_source(args)?;
        let service = match &fleet_source {
            FleetSource::Http(places, http) => places.first().map(|place| RemoteService::at(http, &place.base)),
            FleetSource::Prometheus(_) | FleetSource::Ssh { .. } => None,
        };
        Ok(RemoteMachine { watch: FleetWatcher::start(fleet_source, Duration::from_secs(1))?, service, host: None })
    }

    /// Its snapshot of now, or its last. Empty when it never answered.
    pub fn sample(&mut self) -> Snapshot {
        self.host = self.watch.round(LONGEST).hosts.into_iter().next();
        let last = self.host.as_ref().and_then(HostView::aged);
        last.unwrap_or_else(Snapshot::empty)
    }

    /// What is known of it besides.
    pub fn host(&self) -> Option<&HostView> {
        self.host.as_ref()
    }

    /// Its service, while it answers.
    pub fn service(&mut self) -> Option<&mut RemoteService> {
        let answers = self.host.as_ref().is_some_and(|host| host.trouble().is_none());
        self.service.as_mut().filter(|_| answers)
    }
}

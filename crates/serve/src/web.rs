//! HTTP: where it listens, with which credentials, and how its requests reach the service.

use super::background::Lane;
use super::exits::Exits;
use super::fleet::WatchedFleet;
use super::past;
use super::poller::drain;
use super::service_state::ServiceState;
use crate::args::Args;
use alerts::http;
use alerts::log::{LogLevel, log};
use model::{Event, ExitRecord, Snapshot};
use serde::Serialize;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use watch::exit::{Exit, Failure};
use watch::fleet::settings::FleetSettings;
use watch::fleet::watcher::FleetSource;
use watch::rules::RuleWatch;
use web::fleet::FleetReply;
use web::{Ask, Asker, Published, Question, ServerOptions, WebServer};

/// Where others are let in: sockets that listen, and what clients have to show.
pub struct HttpListeners {
    listeners: Vec<TcpListener>,
    missing: Vec<SocketAddr>,
    credentials: Credentials,
    metrics: web::metrics::MetricsOptions,
}

/// What is served over HTTP. Without a listener, nothing is.
pub struct Web {
    pub board: Arc<Published>,
    server: Option<WebServer>,
    /// Addresses that another program has.
    missing: Vec<SocketAddr>,
    credentials: Credentials,
    /// Other machines, where the configuration names some.
    fleet: Option<Arc<WatchedFleet>>,
    /// The folder of the black box, where one is kept.
    black_box: Option<PathBuf>,
    waiting: Receiver<Question>,
    /// Can be read when there are questions.
    pub questions: UnixStream,
    /// Kept, since the other end of a closed pipe can always be read.
    _ask: Asker,
}

/// Files with what clients have to know, and what we show them.
#[derive(Clone)]
struct Credentials {
    tls: Option<(PathBuf, PathBuf)>,
    /// Authorities for the certificates of clients.
    clients: Option<PathBuf>,
    token: Option<PathBuf>,
}

/// Where to listen by default.
const USUAL: &str = "127.0.0.1:9746";
const MOST_QUESTIONS: usize = 64;

impl HttpListeners {
    /// Listens where the command line says. An address that is in use is a warning, and is tried again.
    pub fn open(args: &Args) -> anyhow::Result<HttpListeners> {
        let wrong = |message: String| Failure::error(Exit::Usage, message);
        let tls = args.tls_cert.clone().zip(args.tls_key.clone());
        let credentials = Credentials { tls, clients: args.tls_client_ca.clone(), token: args.token_file.clone() };
        let (mut listeners, mut missing, metrics) = (Vec::new(), Vec::new(), args.metrics.wanted()?);
        let usual = [USUAL.to_owned()];
        let named = if args.listen.is_empty() { &usual[..] } else { &args.listen[..] };
        if named.iter().any(|place| place == "off") {
            if named.len() > 1 {
                return Err(wrong("--listen off cannot be combined with other addresses".into()));
            }
            return Ok(HttpListeners { listeners, missing, credentials, metrics });
        }
        // Read here only to report errors before anything else is done.
        credentials.read()?;
        for place in named {
            let addresses = place.to_socket_addrs().map_err(|error| {
                wrong(format!("--listen {place}: {error}: expected ADDRESS:PORT, such as 127.0.0.1:9746, or off"))
            })?;
            for address in addresses {
                let is_asked_who = credentials.token.is_some() || credentials.clients.is_some();
                let is_guarded = credentials.tls.is_some() && is_asked_who;
                if !address.ip().to_canonical().is_loopback() && !is_guarded {
                    if !args.insecure {
                        return Err(wrong(format!(
                            "--listen {place}: other machines are served with --tls-cert, --tls-key and --token-file or --tls-client-ca, \
                             or with --insecure, which allows unauthenticated access"
                        )));
                    }
                    let reason = "unauthenticated access is allowed on this port (--insecure)";
                    log(LogLevel::Warning, "insecure", &[("address", &address), ("reason", &reason)]);
                }
                match TcpListener::bind(address) {
                    Ok(listener) => listeners.push(listener),
                    Err(error) if args.listen.is_empty() || error.kind() == io::ErrorKind::AddrInUse => {
                        let reason = format!("{error} (see --listen); it is tried again");
                        log(LogLevel::Warning, "not-listening", &[("address", &address), ("reason", &reason)]);
                        missing.push(address);
                    }
                    Err(error) => return Err(wrong(format!("--listen {place}: cannot listen there: {error}"))),
                }
            }
        }
        Ok(HttpListeners { listeners, missing, credentials, metrics })
    }
}

impl Credentials {
    fn read(&self) -> anyhow::Result<(Option<Arc<rustls::ServerConfig>>, Option<String>)> {
        let wrong = |why: String| Failure::error(Exit::Usage, why);
        let tls = self.tls.as_ref().map(|(cert, key)| web::certificate(cert, key, self.clients.as_deref())).transpose();
        let token = self.token.as_ref().map(|file| http::token(file)).transpose();
        Ok((tls.map_err(|error| wrong(error.to_string()))?, token.map_err(|error| wrong(format!("{error:#}")))?))
    }

    /// Warns when other users of this machine can read a secret.
    fn warn(&self) {
        for file in self.token.iter().chain(self.tls.as_ref().map(|(_, key)| key)) {
            if std::fs::metadata(file).is_ok_and(|about| about.permissions().mode() & 0o007 != 0) {
                let reason = "readable by all users of this machine; use chmod o=";
                log(LogLevel::Warning, "open-secret", &[("path", &file.display()), ("reason", &reason)]);
            }
        }
    }
}

impl Web {
    pub fn start(
        listeners: HttpListeners,
        first: Arc<Snapshot>,
        events: Vec<Event>,
        interval: Duration,
    ) -> anyhow::Result<Web> {
        let HttpListeners { listeners, missing, credentials, metrics } = listeners;
        let board = Arc::new(Published::new(first, interval, metrics, events));
        let (questions, wake) = UnixStream::pair()?;
        questions.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (put, waiting) = sync_channel(MOST_QUESTIONS);
        let ask = asker(put, wake);
        let mut server = None;
        if !listeners.is_empty() || !missing.is_empty() {
            let (tls, token) = credentials.read()?;
            credentials.warn();
            server = Some(WebServer::start(board.clone(), ServerOptions { tls, token, ask: ask.clone() })?);
        }
        let (fleet, black_box) = (None, None);
        let web = Web { board, server, missing, credentials, fleet, black_box, waiting, questions, _ask: ask };
        listeners.into_iter().for_each(|listener| web.listen(listener));
        Ok(web)
    }

    fn listen(&self, listener: TcpListener) {
        let (Some(server), Ok(address)) = (&self.server, listener.local_addr()) else { return };
        let protocol = if self.credentials.tls.is_some() { "https" } else { "http" };
        match server.listen(listener) {
            Ok(()) => log(LogLevel::Info, "listening", &[("protocol", &protocol), ("address", &address)]),
            Err(error) => log(LogLevel::Error, "not-listening", &[("address", &address), ("reason", &error)]),
        }
    }

    /// Watches the machines of the configuration instead of those before. Without HTTP, nobody would look at them.
    pub fn watch_fleet(&mut self, (settings, source): (FleetSettings, Option<FleetSource>)) {
        if self.fleet.as_ref().is_some_and(|fleet| fleet.settings == settings && !settings.has_files()) {
            return;
        }
        self.fleet = None;
        if let Some(source) = source.filter(|_| self.server.is_some()) {
            match WatchedFleet::start(settings, source) {
                Ok(fleet) => self.fleet = Some(Arc::new(fleet)),
                Err(error) => log(LogLevel::Error, "fleet-not-watched", &[("reason", &error)]),
            }
        }
        self.board.set_fleet(self.fleet.is_some());
    }

    /// Answers questions about the past from the black box in this folder.
    pub fn set_black_box(&mut self, folder: Option<PathBuf>) {
        self.board.set_black_box(folder.is_some());
        self.black_box = folder;
    }

    /// Listens at the addresses that are free by now.
    pub fn open_missing(&mut self) {
        let missing = std::mem::take(&mut self.missing);
        for address in missing {
            match TcpListener::bind(address) {
                Ok(listener) => self.listen(listener),
                Err(_) => self.missing.push(address),
            }
        }
    }

    /// Whether anything is served.
    pub fn is_on(&self) -> bool {
        self.server.is_some()
    }

    /// Publishes a new sample, and the events since the one before.
    pub fn publish(&mut self, began: Instant, snapshot: Arc<Snapshot>, events: Vec<Event>, exits: &Exits) {
        if self.is_on() {
            self.board.set_deaths(exits.total);
            self.board.publish(snapshot, began, events);
        }
    }

    pub fn show_alerts(&self, watch: &RuleWatch) {
        if self.server.is_some() {
            let alerts: Vec<serde_json::Value> = watch.alerts().iter().map(|alert| serde_json::json!(alert)).collect();
            self.board.set_alerts(&alerts);
        }
    }

    pub fn answer(&self, state: &ServiceState) {
        drain(&self.questions);
        for Question { ask, answer } in self.waiting.try_iter().filter(|question| !question.answer.is_closed()) {
            let write = answer_to(ask, state, self.fleet.as_ref(), self.black_box.as_deref());
            state.background.add(Lane::Http, move || {
                // A client that has disconnected needs no answer.
                if !answer.is_closed() {
                    let _ = answer.send(write());
                }
                None
            });
        }
    }

    /// Reads certificate, key and token again. Where that fails, the old ones stay.
    pub fn read_credentials(&self) {
        let Some(server) = &self.server else { return };
        match self.credentials.read() {
            Ok((tls, token)) => server.set_keys(tls, token),
            Err(error) => log(LogLevel::Error, "keys-not-reloaded", &[("reason", &format!("{error:#}"))]),
        }
        self.credentials.warn();
    }
}

/// Queues a request for the service, and wakes it up.
fn asker(put: SyncSender<Question>, wake: UnixStream) -> Asker {
    Arc::new(move |question| {
        let is_put = put.try_send(question).is_ok();
        // A pipe that is full wakes it just as well.
        let _ = (&wake).write(&[1]);
        is_put
    })
}

/// How an answer is written: by another thread.
fn answer_to(
    ask: Ask,
    state: &ServiceState,
    fleet: Option<&Arc<WatchedFleet>>,
    black_box: Option<&Path>,
) -> Box<dyn FnOnce() -> Vec<u8> + Send> {
    match ask {
        Ask::Buffers(wanted) => {
            let view = state.view();
            Box::new(move || {
                let mut bytes = Vec::new();
                view.buffers(&wanted).write(&mut bytes);
                bytes
            })
        }
        Ask::Fleet { host } => {
            let fleet = fleet.cloned();
            Box::new(move || match fleet {
                Some(fleet) => fleet.answer(host.as_deref()),
                None => FleetReply::new(false, Vec::new()).json(),
            })
        }
        Ask::Past(wanted) => {
            let folder = black_box.map(Path::to_owned);
            Box::new(move || past::values(folder.as_deref(), &wanted).json())
        }
        Ask::PastSnapshot { at } => {
            let folder = black_box.map(Path::to_owned);
            Box::new(move || serde_json::to_vec(&past::snapshot(folder.as_deref(), at)).unwrap_or_default())
        }
        Ask::Deaths { limit, offset } => {
            #[derive(Serialize)]
            struct ExitsPage<'a> {
                total: usize,
                deaths: Vec<&'a ExitRecord>,
            }
            let total = state.exits.all.len();
            let deaths: Vec<_> =
                state.exits.all.iter().skip(offset).take(limit.unwrap_or(usize::MAX)).cloned().collect();
            Box::new(move || {
                let deaths = deaths.iter().map(|exit| &**exit).collect();
                serde_json::to_vec(&ExitsPage { total, deaths }).unwrap_or_default()
            })
        }
    }
}

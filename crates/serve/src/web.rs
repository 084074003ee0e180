//! HTTP: where it listens, with which credentials, and how its requests reach the service.

use super::exits::Exits;
use super::poller::drain;
use super::service_state::ServiceState;
use crate::args::Args;
use alerts::http;
use alerts::log::{LogLevel, log};
use model::{ExitRecord, Snapshot};
use serde::Serialize;
use std::io::Write;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use watch::events::{Events, Observation};
use watch::exit::{Exit, Failure};
use watch::moment::Moment;
use watch::rules::RuleWatch;
use web::{Ask, Asker, Published, Question, ServerOptions, WebServer};

/// Where others are let in: sockets that listen, and what clients have to show.
pub struct HttpListeners {
    listeners: Vec<TcpListener>,
    credentials: Credentials,
    metrics: web::metrics::MetricsOptions,
}

/// What is served over HTTP. Without a listener, nothing is.
pub struct Web {
    pub board: Arc<Published>,
    events: Events,
    /// The sample before, and how many exits there were until then.
    before: (Arc<Snapshot>, u64),
    server: Option<WebServer>,
    credentials: Credentials,
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
    token: Option<PathBuf>,
}

/// Where to listen by default.
const USUAL: &str = "127.0.0.1:9746";
const MOST_QUESTIONS: usize = 64;

impl HttpListeners {
    /// Listens where the command line says. A default address that is in use is skipped with a warning.
    pub fn open(args: &Args) -> anyhow::Result<HttpListeners> {
        let wrong = |message: String| Failure::error(Exit::Usage, message);
        let tls = args.tls_cert.clone().zip(args.tls_key.clone());
        let credentials = Credentials { tls, token: args.token_file.clone() };
        let (mut listeners, metrics) = (Vec::new(), args.metrics.wanted());
        let usual = [USUAL.to_owned()];
        let named = if args.listen.is_empty() { &usual[..] } else { &args.listen[..] };
        if named.iter().any(|place| place == "off") {
            if named.len() > 1 {
                return Err(wrong("--listen off cannot be combined with other addresses".into()));
            }
            return Ok(HttpListeners { listeners, credentials, metrics });
        }
        // Read here only to report errors before anything else is done.
        credentials.read()?;
        for place in named {
            let addresses = place.to_socket_addrs().map_err(|error| {
                wrong(format!("--listen {place}: {error}: expected ADDRESS:PORT, such as 127.0.0.1:9746, or off"))
            })?;
            for address in addresses {
                let is_guarded = credentials.tls.is_some() && credentials.token.is_some();
                if !address.ip().to_canonical().is_loopback() && !is_guarded {
                    if !args.insecure {
                        return Err(wrong(format!(
                            "--listen {place}: other machines are served with --tls-cert, --tls-key and --token-file, \
                             or with --insecure, which allows unauthenticated access"
                        )));
                    }
                    let reason = "unauthenticated access is allowed on this port (--insecure)";
                    log(LogLevel::Warning, "insecure", &[("address", &address), ("reason", &reason)]);
                }
                match TcpListener::bind(address) {
                    Ok(listener) => listeners.push(listener),
                    Err(error) if args.listen.is_empty() => {
                        let reason = format!("HTTP is disabled: {error} (see --listen)");
                        log(LogLevel::Warning, "not-listening", &[("address", &address), ("reason", &reason)]);
                    }
                    Err(error) => return Err(wrong(format!("--listen {place}: cannot listen there: {error}"))),
                }
            }
        }
        Ok(HttpListeners { listeners, credentials, metrics })
    }
}

impl Credentials {
    fn read(&self) -> anyhow::Result<(Option<Arc<rustls::ServerConfig>>, Option<String>)> {
        let wrong = |why: String| Failure::error(Exit::Usage, why);
        let tls = self.tls.as_ref().map(|(cert, key)| web::certificate(cert, key)).transpose();
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
    pub fn start(listeners: HttpListeners, first: Arc<Snapshot>, interval: Duration) -> anyhow::Result<Web> {
        let HttpListeners { listeners, credentials, metrics } = listeners;
        let mut events = Events::default();
        let nothing = Moment::default();
        events.notice(nothing.observation(), Observation { snapshot: &first, exits: &[] });
        let board = Arc::new(Published::new(first.clone(), interval, metrics, events.take().into()));
        let (questions, wake) = UnixStream::pair()?;
        questions.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (put, waiting) = sync_channel(MOST_QUESTIONS);
        let ask = asker(put, wake);
        let mut server = None;
        if !listeners.is_empty() {
            let (tls, token) = credentials.read()?;
            credentials.warn();
            for listener in &listeners {
                let protocol = if tls.is_some() { "https" } else { "http" };
                let address = listener.local_addr()?;
                log(LogLevel::Info, "listening", &[("protocol", &protocol), ("address", &address)]);
            }
            let options = ServerOptions { listeners, tls, token, ask: ask.clone() };
            server = Some(WebServer::start(board.clone(), options)?);
        }
        Ok(Web { board, events, before: (first, 0), server, credentials, waiting, questions, _ask: ask })
    }

    /// Publishes a new sample, and the events since the one before.
    pub fn publish(&mut self, began: Instant, snapshot: Arc<Snapshot>, exits: &Exits) {
        if self.server.is_none() {
            return;
        }
        let (before, known) = std::mem::replace(&mut self.before, (snapshot.clone(), exits.total));
        let news = usize::try_from(exits.total - known).unwrap_or(usize::MAX);
        let exited: Vec<ExitRecord> = exits.all.iter().take(news).cloned().collect();
        let before = Observation { snapshot: &before, exits: &[] };
        self.events.notice(before, Observation { snapshot: &snapshot, exits: &exited });
        self.board.set_deaths(exits.total);
        self.board.publish(snapshot.clone(), began, self.events.take().into());
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
            // A client that has disconnected needs no answer.
            let _ = answer.send(answer_to(ask, state));
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

fn answer_to(ask: Ask, state: &ServiceState) -> Vec<u8> {
    match ask {
        Ask::Buffers(wanted) => {
            let mut bytes = Vec::new();
            state.buffers(&wanted).write(&mut bytes);
            bytes
        }
        Ask::Deaths { limit, offset } => {
            #[derive(Serialize)]
            struct ExitsPage<'a> {
                total: usize,
                deaths: Vec<&'a ExitRecord>,
            }
            let all = &state.exits.all;
            let deaths = all.iter().skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
            serde_json::to_vec(&ExitsPage { total: all.len(), deaths }).unwrap_or_default()
        }
    }
}

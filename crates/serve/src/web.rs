//! HTTP: where it listens, with which keys, and how its questions reach the service.

use super::deaths::{Death, Deaths};
use super::poller::drain;
use super::state::State;
use crate::args::Args;
use alerts::http;
use alerts::log::{LogLevel, log};
use ledger::wire::{BufferOrder, Wanted};
use model::Snapshot;
use serde::Serialize;
use std::io::Write;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use watch::client;
use watch::events::{Event, Events, Seen, Weight};
use watch::exit::{Exit, Failure};
use watch::moment::Moment;
use watch::rules::Watch;
use web::{Ask, Asker, Board, Options, Order, Question, Server};

/// Where others are let in: sockets that listen, and what callers have to show.
pub struct Entrance {
    listeners: Vec<TcpListener>,
    keys: Keys,
    metrics: web::metrics::MetricsOptions,
}

/// What is served over HTTP. Without a listener it is nothing but a board that nobody looks at.
pub struct Web {
    pub board: Arc<Board>,
    events: Events,
    /// The sample before, and how many deaths there were until then.
    before: (Arc<Snapshot>, u64),
    server: Option<Server>,
    keys: Keys,
    waiting: Receiver<Question>,
    /// Can be read when there are questions.
    pub questions: UnixStream,
    /// Kept, since the other end of a closed pipe can always be read.
    _ask: Asker,
}

/// Files with what callers have to know, and what we show them.
#[derive(Clone)]
struct Keys {
    tls: Option<(PathBuf, PathBuf)>,
    token: Option<PathBuf>,
}

/// Where to listen when nobody says it.
const USUAL: &str = "127.0.0.1:9746";
/// Questions that may wait.
const MOST_QUESTIONS: usize = 64;

impl Entrance {
    /// Listens where the command line says. The usual place is done without when somebody else has it.
    pub fn open(args: &Args) -> anyhow::Result<Entrance> {
        let wrong = |message: String| Failure::error(Exit::Usage, message);
        let tls = args.tls_cert.clone().zip(args.tls_key.clone());
        let keys = Keys { tls, token: args.token_file.clone() };
        let (mut listeners, metrics) = (Vec::new(), args.metrics.wanted());
        let usual = [USUAL.to_owned()];
        let named = if args.listen.is_empty() { &usual[..] } else { &args.listen[..] };
        if named.iter().any(|place| place == "off") {
            if named.len() > 1 {
                return Err(wrong("--listen off: leave the other addresses out, or this".into()));
            }
            return Ok(Entrance { listeners, keys, metrics });
        }
        // Read here only to tell what is wrong with them before anything else is done.
        keys.read()?;
        for place in named {
            let addresses = place.to_socket_addrs().map_err(|error| {
                wrong(format!("--listen {place}: {error}: name an address and a port, as 127.0.0.1:9746, or off"))
            })?;
            for address in addresses {
                let is_guarded = keys.tls.is_some() && keys.token.is_some();
                if !address.ip().to_canonical().is_loopback() && !is_guarded {
                    if !args.insecure {
                        return Err(wrong(format!(
                            "--listen {place}: other machines are served with --tls-cert, --tls-key and --token-file, \
                             or with --insecure, which lets everybody look who reaches the port"
                        )));
                    }
                    let reason = "everybody who reaches this port may look, since --insecure is given";
                    log(LogLevel::Warning, "insecure", &[("address", &address), ("reason", &reason)]);
                }
                match TcpListener::bind(address) {
                    Ok(listener) => listeners.push(listener),
                    Err(error) if args.listen.is_empty() => {
                        let reason = format!("nothing is served over HTTP: {error} (see --listen)");
                        log(LogLevel::Warning, "not-listening", &[("address", &address), ("reason", &reason)]);
                    }
                    Err(error) => return Err(wrong(format!("--listen {place}: cannot listen there: {error}"))),
                }
            }
        }
        Ok(Entrance { listeners, keys, metrics })
    }
}

impl Keys {
    fn read(&self) -> anyhow::Result<(Option<Arc<rustls::ServerConfig>>, Option<String>)> {
        let wrong = |why: String| Failure::error(Exit::Usage, why);
        let tls = self.tls.as_ref().map(|(cert, key)| web::certificate(cert, key)).transpose();
        let token = self.token.as_ref().map(|file| http::token(file)).transpose();
        Ok((tls.map_err(|error| wrong(error.to_string()))?, token.map_err(|error| wrong(format!("{error:#}")))?))
    }

    /// Says so when others on this machine can read what they should not.
    fn warn(&self) {
        for file in self.token.iter().chain(self.tls.as_ref().map(|(_, key)| key)) {
            if std::fs::metadata(file).is_ok_and(|about| about.permissions().mode() & 0o007 != 0) {
                let reason = "everybody on this machine can read it: chmod o= would change that";
                log(LogLevel::Warning, "open-secret", &[("path", &file.display()), ("reason", &reason)]);
            }
        }
    }
}

impl Web {
    /// Begins to answer.
    pub fn start(entrance: Entrance, first: Arc<Snapshot>, interval: Duration) -> anyhow::Result<Web> {
        let Entrance { listeners, keys, metrics } = entrance;
        let mut events = Events::default();
        let nothing = Moment::default();
        events.notice(nothing.seen(), Seen { snapshot: &first, deaths: &[] });
        let board =
            Arc::new(Board::new(first.clone(), interval, metrics, events.take().into_iter().map(told_of).collect()));
        let (questions, wake) = UnixStream::pair()?;
        questions.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (put, waiting) = sync_channel(MOST_QUESTIONS);
        let ask = asker(put, wake);
        let mut server = None;
        if !listeners.is_empty() {
            let (tls, token) = keys.read()?;
            keys.warn();
            for listener in &listeners {
                let protocol = if tls.is_some() { "https" } else { "http" };
                let address = listener.local_addr()?;
                log(LogLevel::Info, "listening", &[("protocol", &protocol), ("address", &address)]);
            }
            let options = Options { listeners, tls, token, ask: ask.clone() };
            server = Some(Server::start(board.clone(), options)?);
        }
        Ok(Web { board, events, before: (first, 0), server, keys, waiting, questions, _ask: ask })
    }

    /// Shows a new sample, and what has happened since the one before.
    pub fn publish(&mut self, began: Instant, snapshot: Arc<Snapshot>, deaths: &Deaths) {
        if self.server.is_none() {
            return;
        }
        let (before, told) = std::mem::replace(&mut self.before, (snapshot.clone(), deaths.total));
        let news = usize::try_from(deaths.total - told).unwrap_or(usize::MAX);
        let dead: Vec<client::Death> = deaths.latest(Some(news)).into_iter().map(Death::in_short).collect();
        let (before, now) = (Seen { snapshot: &before, deaths: &[] }, Seen { snapshot: &snapshot, deaths: &dead });
        self.events.notice(before, now);
        self.board.set_deaths(deaths.total);
        self.board.publish(snapshot.clone(), began, self.events.take().into_iter().map(told_of).collect());
    }

    /// Shows what the rules say.
    pub fn show_alerts(&self, watch: &Watch) {
        if self.server.is_some() {
            let alerts: Vec<serde_json::Value> = watch.alerts().iter().map(|alert| serde_json::json!(alert)).collect();
            self.board.set_alerts(&alerts);
        }
    }

    pub fn set_interval(&self, interval: Duration) {
        self.board.set_interval(interval);
    }

    /// Answers what was asked since.
    pub fn answer(&self, state: &State) {
        drain(&self.questions);
        for Question { ask, answer } in self.waiting.try_iter().filter(|question| !question.answer.is_closed()) {
            // Whoever has gone away meanwhile needs no answer.
            let _ = answer.send(told(ask, state));
        }
    }

    /// Reads certificate, key and token anew. With those that cannot be read all stays as it was.
    pub fn read_keys(&self) {
        let Some(server) = &self.server else { return };
        match self.keys.read() {
            Ok((tls, token)) => server.set_keys(tls, token),
            Err(error) => log(LogLevel::Error, "keys-not-reloaded", &[("reason", &format!("{error:#}"))]),
        }
        self.keys.warn();
    }
}

fn told_of(event: Event) -> web::Event {
    let weight = match event.weight {
        Weight::Note => "note",
        Weight::Good => "good",
        Weight::Warning => "warning",
        Weight::Bad => "bad",
    };
    let device = event.device.map(|id| id.to_string());
    web::Event { seq: 0, time: event.time, weight, device, text: event.text }
}

/// Puts a question where the service finds it, and wakes it up.
fn asker(put: SyncSender<Question>, wake: UnixStream) -> Asker {
    Arc::new(move |question| {
        let is_put = put.try_send(question).is_ok();
        // A pipe that is full wakes it just as well.
        let _ = (&wake).write(&[1]);
        is_put
    })
}

fn told(ask: Ask, state: &State) -> Vec<u8> {
    match ask {
        Ask::Buffers { pid, device, kind, order, limit, offset } => {
            let sort = match order {
                Order::Bytes => BufferOrder::Bytes,
                Order::Age => BufferOrder::Age,
                Order::Device => BufferOrder::Device,
            };
            let wanted = Wanted { pid, device, kind, sort, limit, offset, ..Wanted::default() };
            let (page, unlisted, faults) = state.page_of_buffers(&wanted);
            let mut bytes = Vec::new();
            page.write(&mut bytes, unlisted, &faults);
            bytes
        }
        Ask::Deaths { limit, offset } => {
            #[derive(Serialize)]
            struct Deaths<'a> {
                total: usize,
                deaths: Vec<&'a Death>,
            }
            let all = state.deaths.latest(None);
            let deaths = all.into_iter().skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
            serde_json::to_vec(&Deaths { total: state.deaths.number(), deaths }).unwrap_or_default()
        }
    }
}

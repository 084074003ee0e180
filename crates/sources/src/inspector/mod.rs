//! Asks tt-metal's Inspector which operations a process has launched.
//!
//! Every program with tt-metal offers Cap'n Proto calls on `localhost:50051`, unless it is told otherwise or another program has the
//! port. An answer copies whole tables under locks of the workload, so it is asked only when a person wants to know. In reading order:
//!
//! - `process`: the process in `/proc`, its library, its schema and its sockets; `owner`: who listens where,
//! - `schema`: numbers of methods and places of fields, from the text beside the library,
//! - `client`, `rpc`, `capnp`: the conversation, its messages, their bytes,
//! - `launches`: the answers as plain data.

mod capnp;
mod client;
pub mod decode;
mod launches;
mod owner;
mod process;
mod rpc;
mod schema;
#[cfg(test)]
mod tests;

use crate::dir::Root;
use crate::pool::Pool;
use client::{AskError, InspectorClient};
use model::OperationList;
use process::InspectedProcess;
use schema::Schema;
use std::time::{Duration, Instant};

/// All of it takes no longer than this.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Why the operations of a process are not known: one sentence, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectorRefusal {
    /// It never was, or has exited.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It is another user's.
    #[error("process {pid} belongs to {user} and may not be read: {advice}")]
    NotPermitted {
        /// The process.
        pid: u32,
        /// Its user.
        user: String,
        /// What to do.
        advice: String,
    },
    /// It is none that could have an Inspector.
    #[error("process {0} has not loaded libtt_metal.so: only programs with tt-metal have an Inspector")]
    NoLibrary(u32),
    /// The library that it runs is no longer there.
    #[error(
        "process {pid} runs a libtt_metal.so that was replaced or removed since, and its schema with it: restart the process"
    )]
    Replaced {
        /// The process.
        pid: u32,
    },
    /// It cannot be reached from here.
    #[error(
        "process {0} is in another network namespace, as in a container: run `nsenter --target {0} --net ttmon ops {0}` as root, or run \
         ttmon in that container"
    )]
    OtherNetwork(u32),
    /// Its environment says so.
    #[error("process {pid} has no Inspector: {variable}=0 turns it off; start it without that variable")]
    Off {
        /// The process.
        pid: u32,
        /// What turns it off.
        variable: &'static str,
    },
    /// The Inspector of another process has it.
    #[error(
        "process {pid} has no Inspector port: port {port} belongs to {owner}; give each process a port of its own with \
         TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS=localhost:PORT"
    )]
    PortTaken {
        /// The process.
        pid: u32,
        /// The port.
        port: u16,
        /// The other process, or its user.
        owner: String,
    },
    /// Nothing listens where it should.
    #[error(
        "process {pid} has no Inspector port: it does not listen on {wanted}. It has no device open, or it has set another address \
         itself{hint}"
    )]
    NoPort {
        /// The process.
        pid: u32,
        /// Where it should.
        wanted: String,
        /// Where it listens instead.
        hint: String,
    },
    /// A child inherited the socket.
    #[error("process {pid} shares the socket of its Inspector with another process, which answers: ask {owner}")]
    Shared {
        /// The process.
        pid: u32,
        /// Who answers.
        owner: String,
    },
    /// A program that was built or copied by hand, most of the time.
    #[error(
        "there is no schema triage/inspector.capnp beside {library}: install it from the ttnn wheel of the same version"
    )]
    NoSchema {
        /// The library.
        library: String,
    },
    /// Another version of tt-metal.
    #[error("the schema {path} is not known: {reason}; update ttmon")]
    UnknownSchema {
        /// Where it is.
        path: String,
        /// What is unknown.
        reason: String,
    },
    /// It hangs, or all takes too long.
    #[error("the Inspector of process {pid} did not answer within {} s: the process may be stopped or hung; try again", PATIENCE.as_secs())]
    Late {
        /// The process.
        pid: u32,
    },
    /// It answers something else.
    #[error("the Inspector of process {pid} {reason}")]
    NoAnswer {
        /// The process.
        pid: u32,
        /// What it does.
        reason: String,
    },
}

/// Asks the Inspector of a process, by default where its environment says that it listens. Takes [`PATIENCE`] at the most.
pub fn launched_operations(root: &Root, pid: u32, address: Option<&str>) -> Result<OperationList, InspectorRefusal> {
    let deadline = Instant::now() + PATIENCE;
    // Files of a process may block, and the file system of its schema too.
    let pool = Pool::new(move |(root, address): (Root, Option<String>), _: &dyn Fn((), _)| {
        ask(&root, pid, address.as_deref(), deadline)
    });
    pool.begin([((), (root.clone(), address.map(str::to_owned)))]);
    pool.wait(deadline);
    pool.answers().next().unwrap_or(Err(InspectorRefusal::Late { pid }))
}

fn ask(root: &Root, pid: u32, address: Option<&str>, deadline: Instant) -> Result<OperationList, InspectorRefusal> {
    let process = InspectedProcess::open(root, pid)?;
    let schema = process.schema()?;
    let listener = process.listener(address)?;
    let refusal = |error: AskError| match error {
        AskError::Late => InspectorRefusal::Late { pid },
        error => InspectorRefusal::NoAnswer { pid, reason: error.to_string() },
    };
    let mut client = listener.connect(deadline).map_err(refusal)?;
    client.bootstrap().map_err(refusal)?;
    // It has been accepted by now. What follows takes locks, so it must be the right process.
    process.check_peer(&client, &listener)?;
    converse(&mut client, &schema, pid).map_err(refusal)
}

fn converse(client: &mut InspectorClient, schema: &Schema, pid: u32) -> Result<OperationList, AskError> {
    let (bytes, question) = client.call(schema.interface, schema.entries)?;
    let mut list = launches::operations(&bytes, question, &schema.entry, pid)?;
    if let Some(method) = schema.devices {
        let (bytes, question) = client.call(schema.interface, method)?;
        list.chips = Some(launches::chips(&bytes, question)?);
    }
    Ok(list)
}

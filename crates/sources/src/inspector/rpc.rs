//! The four messages of Cap'n Proto's remote procedure calls (its `rpc.capnp`, level 1) that a client without objects of its own needs.

use super::capnp::{Message, MessageBuilder, MessageError, Struct};
use model::text::clean;

/// What a message is, by the number of its member in the union `Message`.
const ABORT: u64 = 1;
const CALL: u64 = 2;
const RETURN: u64 = 3;
const FINISH: u64 = 4;
const BOOTSTRAP: u64 = 8;

/// Asks for the object that a server offers to everyone.
pub fn bootstrap(question: u32) -> Vec<u8> {
    let mut message = MessageBuilder::new();
    let body = message.structure(0, &[BOOTSTRAP], 1);
    message.structure(body, &[u64::from(question)], 1);
    message.bytes()
}

/// Calls a method without parameters of the object that another question asks for.
pub fn call(question: u32, object: u32, interface: u64, method: u16) -> Vec<u8> {
    let mut message = MessageBuilder::new();
    let body = message.structure(0, &[CALL], 1);
    let target = message.structure(body, &[u64::from(question) | u64::from(method) << 32, interface, 0], 3);
    // The target is the answer to a question, which is member 1 of its union.
    let answer = message.structure(target, &[1 << 32], 1);
    message.structure(answer, &[u64::from(object)], 1);
    message.structure(target + 1, &[], 2);
    message.bytes()
}

/// Says that an answer is no longer needed.
pub fn finish(question: u32) -> Vec<u8> {
    let mut message = MessageBuilder::new();
    let body = message.structure(0, &[FINISH], 1);
    message.structure(body, &[u64::from(question)], 0);
    message.bytes()
}

/// What a server says instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// A message that cannot be read.
    #[error("sent a message that cannot be read: {0}")]
    Message(#[from] MessageError),
    /// The call failed, in the server's words.
    #[error("refused the call: {0}")]
    Exception(String),
    /// It closes the connection, in its words.
    #[error("ended the conversation: {0}")]
    Abort(String),
    /// The call was not carried out, without a reason.
    #[error("did not carry out the call")]
    NoResult,
}

/// The results of a question, if this message is the answer to it. `None` for all other messages.
pub fn results<'a>(message: &'a Message<'a>, question: u32) -> Result<Option<Struct<'a>>, RpcError> {
    let root = message.root()?;
    match root.number(16, 0) {
        ABORT => Err(RpcError::Abort(reason(root.structure(0)?)?)),
        RETURN => {
            let answer = root.structure(0)?;
            if answer.number(32, 0) != u64::from(question) {
                return Ok(None);
            }
            match answer.number(16, 3) {
                // The payload, whose first pointer is its content.
                0 => Ok(Some(answer.structure(0)?)),
                1 => Err(RpcError::Exception(reason(answer.structure(0)?)?)),
                _ => Err(RpcError::NoResult),
            }
        }
        // It may release objects and the like, of which there are none here.
        _ => Ok(None),
    }
}

/// The text of an exception, short and harmless.
fn reason(exception: Struct) -> Result<String, MessageError> {
    let text = exception.text(0)?;
    Ok(clean(&text.chars().take(200).collect::<String>()).into_owned())
}

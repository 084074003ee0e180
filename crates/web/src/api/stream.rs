//! The stream: every sample as it comes, as server-sent events. Whoever reads slowly misses samples, and costs no memory.

use crate::board::Board;
use hyper::body::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A line that says nothing keeps those between from closing the connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Begins with what there is now.
pub fn begin(board: Arc<Board>) -> mpsc::Receiver<Bytes> {
    // One piece on its way, and the next is chosen when there is room for it: the newest then.
    let (pieces, taken) = mpsc::channel(1);
    tokio::spawn(tell(board, pieces));
    taken
}

async fn tell(board: Arc<Board>, pieces: mpsc::Sender<Bytes>) {
    let mut changes = board.changes();
    changes.mark_changed();
    let mut told = 0;
    if pieces.send(Bytes::from_static(b"retry: 2000\n\n")).await.is_err() {
        return;
    }
    loop {
        let Ok(room) = pieces.reserve().await else { return };
        let news = tokio::select! {
            news = timeout(SIGN_OF_LIFE, changes.changed()) => news,
            () = pieces.closed() => return,
        };
        match news {
            Err(_) => room.send(Bytes::from_static(b": still here\n\n")),
            // The board is gone, and the service with it.
            Ok(Err(_)) => return,
            Ok(Ok(())) => {
                let sample = board.sample();
                if sample.number != told {
                    told = sample.number;
                    room.send(sample.frame().plain());
                }
            }
        }
    }
}

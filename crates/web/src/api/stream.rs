//! The stream: every sample as it comes, as server-sent events. A slow reader misses samples and costs no memory.

use crate::published::Published;
use hyper::body::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A comment line keeps proxies from closing the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Begins with what there is now, and with the events behind a number, if one is named.
pub fn begin(published: Arc<Published>, since: Option<u64>) -> mpsc::Receiver<Bytes> {
    // One piece on its way, and the next is chosen when there is room for it: the newest then.
    let (pieces, taken) = mpsc::channel(1);
    let position =
        StreamPosition { sample: 0, event: since.unwrap_or_else(|| published.lock().events.newest), alerts: 0 };
    tokio::spawn(send_all(published, position, pieces));
    taken
}

/// What a client has been sent.
struct StreamPosition {
    sample: u64,
    event: u64,
    alerts: u64,
}

async fn send_all(published: Arc<Published>, mut position: StreamPosition, pieces: mpsc::Sender<Bytes>) {
    let mut changes = published.changes.subscribe();
    if pieces.send(Bytes::from_static(b"retry: 2000\n\n")).await.is_err() {
        return;
    }
    loop {
        let Ok(room) = pieces.reserve().await else { return };
        changes.mark_unchanged();
        if let Some(piece) = position.next(&published) {
            room.send(piece);
            continue;
        }
        let news = tokio::select! {
            news = timeout(KEEP_ALIVE, changes.changed()) => news,
            () = pieces.closed() => return,
        };
        match news {
            Err(_) => room.send(Bytes::from_static(b": still here\n\n")),
            // The board is gone, and the service with it.
            Ok(Err(_)) => return,
            Ok(Ok(())) => {}
        }
    }
}

impl StreamPosition {
    /// What has not been sent yet, one thing at a time.
    fn next(&mut self, published: &Published) -> Option<Bytes> {
        let sample = published.sample();
        if sample.number != self.sample {
            self.sample = sample.number;
            return Some(sample.frame().plain());
        }
        if published.lock().events.newest != self.event {
            let (frame, newest) = published.events_frame(self.event);
            self.event = newest;
            return Some(frame);
        }
        let alerts = published.lock().alerts.clone();
        if alerts.version != self.alerts {
            self.alerts = alerts.version;
            return Some([&b"event: alerts\ndata: "[..], &alerts.json, b"\n\n"].concat().into());
        }
        None
    }
}

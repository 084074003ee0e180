// Requests to the service, and its stream: one for all tabs of a browser, which opens at most six connections to a host. A shared
// worker runs this file and reads the stream. Where a browser has no shared workers, each page reads its own.

/// The service sends something every 15 seconds. A connection without news for this long is lost, in milliseconds.
const SILENCE = 40e3;
/// Open streams by their token. A tab with another token, or without one, gets nothing of them.
const streams = new Map();

/// Sends a request to the service, wherever a proxy has put it.
export async function request(path, token, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(new URL(`../../api/v1/${path}`, import.meta.url), { headers, cache: "no-cache", redirect: "error", signal });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => null);
    throw Object.assign(new Error(problem?.error?.reason ?? `the service answers ${answer.status}`), { status: answer.status });
  }
  return answer;
}

/// Why an answer did not come.
export const reasonOf = (error) => (error.name === "AbortError" ? "the service does not respond" : error instanceof TypeError ? "the service cannot be reached" : error.message);

/// Whether the worker could not be started, as in some private windows.
let isAlone = false;

/// Takes part in the stream: `tell` is called with each event, `{ name, data }`, and once with `{ reason, status }` when the stream
/// has ended. Returns a function that leaves it.
export function takePart(token, tell) {
  if (isAlone || !globalThis.SharedWorker) return join(token, tell);
  const worker = new SharedWorker(import.meta.url, { type: "module" });
  worker.onerror = () => {
    isAlone = true;
    tell({ reason: "the browser cannot start a shared worker" });
  };
  worker.port.onmessage = ({ data }) => tell(data);
  worker.port.postMessage(token);
  return () => {
    worker.port.postMessage(null);
    worker.port.close();
  };
}

// A tab that connects to the worker says its token, and anything else when it leaves.
globalThis.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: token }) => {
    port.onmessage = join(token, (said) => port.postMessage(said));
  };
};

function join(token, tell) {
  const stream = streams.get(token) ?? open(token);
  stream.listeners.add(tell);
  for (const event of stream.latest.values()) tell(event);
  return () => {
    stream.listeners.delete(tell);
    if (!stream.listeners.size) close(stream);
  };
}

function open(token) {
  const stream = { token, listeners: new Set(), latest: new Map(), stop: new AbortController() };
  streams.set(token, stream);
  const end = ({ reason, status }) => {
    close(stream);
    stream.listeners.forEach((tell) => tell({ reason, status }));
  };
  read(stream).then(() => end({ reason: "the service closed the connection" }), (error) => end({ reason: reasonOf(error), status: error.status }));
  return stream;
}

function close(stream) {
  stream.stop.abort();
  // A new one with this token may be open by now.
  if (streams.get(stream.token) === stream) streams.delete(stream.token);
}

async function read({ token, listeners, latest, stop }) {
  let dog;
  const isHeard = () => {
    clearTimeout(dog);
    dog = setTimeout(() => stop.abort(), SILENCE);
  };
  try {
    isHeard();
    const answer = await request("stream", token, stop.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      isHeard();
      const { done, value } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r", "");
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const event of blocks.map(parse)) {
        // A tab that joins later begins with these.
        latest.set(event.name, event);
        listeners.forEach((tell) => tell(event));
      }
    }
  } finally {
    clearTimeout(dog);
  }
}

/// An event of the stream: its name, and its data as text.
function parse(block) {
  const event = { name: "message", data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event.name = line.slice(6).trim();
    else if (line.startsWith("data:")) event.data += line.slice(5);
  }
  return event;
}

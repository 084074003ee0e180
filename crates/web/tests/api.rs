//! The API as programs see it: through real sockets.

use crate::support::{TestServer, event, machine, wait_for};
use model::figure::device::kept_in_history;
use model::{DeviceId, Held, Usage};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Instant;

#[test]
fn the_snapshot_is_the_one_that_was_published_byte_for_byte() {
    let served = TestServer::start();
    let first = served.get("/api/v1/snapshot");
    assert_eq!(first.text(), serde_json::to_string(&*served.published.sample().snapshot).unwrap());
    let next = machine(2, &["other"]);
    served.published.publish(next.clone(), Instant::now(), Vec::new());
    assert_eq!(served.get("/api/v1/snapshot").text(), serde_json::to_string(&*next).unwrap());
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let served = TestServer::start();
    for path in [
        "/api/v1/snapshot",
        "/api/v1/devices?id=0",
        "/api/v1/processes?filter=python3",
        "/api/v1/events",
        "/api/v1/deaths",
        "/api/v1/openapi.json",
        "/api/v1/figures",
        "/",
    ] {
        let tag = served.get(path).headers["etag"].clone();
        let again = served.ask("GET", path, &[&format!("if-none-match: {tag}")]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    let tag = served.get("/api/v1/snapshot").headers["etag"].clone();
    served.published.publish(machine(2, &[]), Instant::now(), Vec::new());
    assert_eq!(served.ask("GET", "/api/v1/snapshot", &[&format!("if-none-match: {tag}")]).status, 200);
}

#[test]
fn long_answers_are_packed_for_those_who_ask_for_it() {
    let served = TestServer::start();
    let plain = served.get("/api/v1/snapshot");
    let packed = served.ask("GET", "/api/v1/snapshot", &["accept-encoding: br, gzip"]);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.body.len() < plain.body.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    let short = served.ask("GET", "/api/v1/alerts", &["accept-encoding: gzip"]);
    assert!(!short.headers.contains_key("content-encoding"));
}

#[test]
fn head_is_get_without_the_body_and_all_else_is_refused() {
    let served = TestServer::start();
    let (head, get) = (served.ask("HEAD", "/api/v1/devices", &[]), served.get("/api/v1/devices"));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.headers["content-length"], get.body.len().to_string());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = served.ask(method, "/api/v1/devices", &[]);
        assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, "GET, HEAD"), "{method}");
        assert_eq!(answer.reason(), format!("{method} is not answered here: GET and HEAD are"));
    }
}

#[test]
fn devices_and_processes_can_be_chosen() {
    let served = TestServer::start();
    let all = served.get("/api/v1/devices").json();
    assert_eq!((all["devices"].as_array().unwrap().len(), &all["taken_at"]), (2, &json!("1970-01-01T00:00:01.000Z")));
    assert_eq!(served.get("/api/v1/devices?id=1").json()["devices"][0]["power_watts"], 41.0);
    let unknown = served.get("/api/v1/devices?id=0,7");
    assert_eq!((unknown.status, unknown.reason().as_str()), (404, r#"there is no device "7" here: there are 0, 1"#));
    let one = served.get("/api/v1/processes?name=python3").json();
    assert_eq!((&one["total"], &one["processes"][0]["pid"]), (&json!(1), &json!(100)));
    let page = served.get("/api/v1/processes?limit=1&offset=1").json();
    assert_eq!((&page["total"], &page["processes"][0]["pid"]), (&json!(2), &json!(101)));
    assert_eq!(served.get("/api/v1/processes?device=0").json()["total"], 0);
    let wrong = served.get("/api/v1/processes?pid=many");
    assert_eq!((wrong.status, wrong.reason().as_str()), (400, r#"pid="many" is no whole number from 0 to 4294967295"#));
}

#[test]
fn processes_are_filtered_as_in_top() {
    let served = TestServer::start();
    let mut snapshot = (*machine(2, &["vllm", "train", "idle"])).clone();
    for (process, (user, gib)) in snapshot.processes.iter_mut().zip([("me", 2), ("you", 1), ("me", 0)]) {
        process.user = Some(user.into());
        let usage = if gib > 0 { Usage::measured(gib << 30, 0, 0, 0, 0) } else { Usage::default() };
        process.devices = vec![Held { usage, ..Held::new(DeviceId::Local(0)) }];
    }
    served.published.publish(Arc::new(snapshot), Instant::now(), Vec::new());
    let found = |filter: &str, rest: &str| -> Vec<u64> {
        let answer = served.get(&format!("/api/v1/processes?filter={filter}{rest}")).json();
        answer["processes"].as_array().unwrap().iter().map(|process| process["pid"].as_u64().unwrap()).collect()
    };
    assert_eq!(found("", ""), [100, 101, 102]);
    assert_eq!(found("dram%3E1G", ""), [100]);
    assert_eq!(found("user:me", ""), [100, 102]);
    assert_eq!(found("user:me", "&name=idle"), [102], "with the other parameters");
    assert_eq!(found("name~LL+or+pid:101", ""), [100, 101]);
    assert_eq!(found("not+dram%3E1G", ""), [101, 102], "what is unknown does not match");
    assert_eq!(found("-(user:me+or+train)", ""), [0; 0]);
    assert_eq!(found("growth%3E0", ""), [0; 0], "no growth is known here");
}

#[test]
fn a_wrong_filter_is_refused_with_what_is_wrong() {
    let served = TestServer::start();
    let why = |filter: &str| {
        let answer = served.get(&format!("/api/v1/processes?filter={filter}"));
        assert_eq!(answer.status, 400, "{filter}");
        answer.reason()
    };
    let unknown = why("drm%3E1G");
    assert!(
        unknown.starts_with("at 1: unknown field \"drm\" (did you mean dram?); expected one of pid, "),
        "{unknown}"
    );
    assert!(unknown.ends_with(", share, age"), "{unknown}");
    assert_eq!(why("user:"), "at 6: expected a text after `user:`");
    assert_eq!(why("(vllm"), "at 1: this bracket is not closed");
    assert_eq!(why(&"a".repeat(501)), "a filter of 501 characters is too long: 500 are allowed");
    assert_eq!(served.get(&format!("/api/v1/processes?filter={}", "%C3%A9".repeat(500))).status, 200);
}

#[test]
fn what_only_the_service_knows_is_asked_of_it() {
    let served = TestServer::start();
    assert_eq!(
        served.get("/api/v1/buffers?pid=7&kind=l1&sort=age&limit=3&offset=2&device=0").json()["asked"],
        r#"Buffers(Wanted { pid: Some(7), device: Some("0"), kind: Some("l1"), label: None, sort: Age, offset: 2, limit: Some(3) })"#
    );
    let wrong = served.get("/api/v1/buffers?kind=l2");
    assert_eq!(
        (wrong.status, wrong.reason().as_str()),
        (400, r#"kind="l2" is none of dram, l1, l1_small, trace, cb, kernel"#)
    );
}

#[test]
fn history_has_what_was_published() {
    let served = TestServer::start();
    served.published.publish(machine(2, &[]), Instant::now(), Vec::new());
    let answer = served.get("/api/v1/history?series=power_watts&device=1&from=1000&to=4000&step=1000");
    assert_eq!(
        answer.text(),
        r#"{"from_ms":1000,"to_ms":4000,"step_ms":1000,"series":[{"device":"1","name":"power_watts","unit":"W","points":[[41,41,41],[41,41,41],null]}]}"#
    );
    let series = served.get("/api/v1/history").json()["series"].as_array().unwrap().len();
    assert_eq!(series, 2 * kept_in_history().count(), "of two devices");
    assert!(served.get("/api/v1/history?series=powr").reason().starts_with(r#"there is no series "powr": known are "#));
}

#[test]
fn events_follow_a_number() {
    let served = TestServer::start();
    served.published.publish(machine(2, &[]), Instant::now(), vec![event("one"), event("two")]);
    let texts = |path: &str| {
        let answer = served.get(path).json();
        assert_eq!(answer["newest"], 3);
        answer["events"].as_array().unwrap().iter().map(|event| event["text"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts("/api/v1/events"), ["it began", "one", "two"]);
    assert_eq!(texts("/api/v1/events?since=1&limit=1"), ["one"]);
}

#[test]
fn the_stream_tells_samples_events_and_alerts() {
    let served = TestServer::start();
    let mut stream = served.connect();
    stream.write_all(b"GET /api/v1/stream?since=0 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut until = |start: &str| lines.find(|line| line.starts_with(start)).unwrap();
    assert_eq!(until("content-type"), "content-type: text/event-stream");
    assert_eq!(until("retry"), "retry: 2000");
    assert_eq!((until("event:"), until("id:")), ("event: snapshot".into(), "id: 1".into()));
    assert!(until("data:").starts_with(r#"data: {"schema":1,"taken_at":"1970-01-01T00:00:01.000Z""#));
    assert_eq!(until("event:"), "event: events");
    assert!(until("data:").contains("it began"));
    served.published.set_alerts(&[json!({ "name": "hot" })]);
    assert_eq!(
        (until("event:"), until("data:")),
        ("event: alerts".into(), r#"data: {"alerts":[{"name":"hot"}]}"#.into())
    );
    served.published.publish(machine(2, &[]), Instant::now(), vec![event("news")]);
    assert_eq!((until("event:"), until("id:")), ("event: snapshot".into(), "id: 2".into()));
    assert_eq!(until("event:"), "event: events");
    assert!(until("data:").contains(r#""seq":2"#));
    assert_eq!(served.get("/api/v1/alerts").text(), r#"{"alerts":[{"name":"hot"}]}"#);
}

#[test]
fn a_service_without_samples_is_not_healthy() {
    let served = TestServer::start();
    let probes = || ["/healthz", "/-/ready", "/-/healthy"].map(|path| served.get(path).status);
    assert_eq!((probes(), served.get("/-/ready").text()), ([200; 3], "ok\n"));
    served.published.set_interval(std::time::Duration::from_millis(10));
    wait_for(|| served.get("/healthz").status == 503, || "it is still healthy".into());
    assert_eq!(probes(), [503, 503, 200], "it answers, but has nothing new to say");
    assert!(served.get("/healthz").reason().ends_with("s old, and there should be one every 10ms"));
    assert_eq!(served.get("/api/v1/snapshot").status, 200, "what is known is told all the same");
}

#[test]
fn metrics_come_in_two_forms() {
    let served = TestServer::start();
    let text = served.get("/metrics");
    assert!(text.headers["content-type"].starts_with("text/plain; version=0.0.4"));
    let open = served.ask("GET", "/metrics", &["accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5"]);
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert!(open.text().ends_with("# EOF\n"));
}

#[test]
fn status_tells_of_the_service() {
    let status = TestServer::start().get("/api/v1/status").json();
    assert_eq!((&status["interval_ms"], &status["clients"]), (&json!(1000), &json!(1)));
    assert_eq!(status["host"]["name"], "somewhere");
    assert!(status["history"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(status["history"]["oldest_ms"], 0);
}

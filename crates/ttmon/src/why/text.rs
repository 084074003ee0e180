//! A story as text: what changed first, then a line for each fact with its time and its source.

use super::Answer;
use crate::screen::local_time;
use model::Timestamp;
use model::throttle::spoken;
use show::style::{Style, Tone};
use show::text::{clean, wrapped};
use watch::incident::story::{LineKind, Story};

/// The columns of the times, and a blank line's worth of them in front of what follows.
const TIME: usize = 10;
/// Text is no wider, also on a wide terminal.
const WIDEST: usize = 100;

pub fn text(answer: &Answer, style: &Style, now: Timestamp) -> String {
    let long = |time| local_time(time, "%Y-%m-%d %H:%M:%S");
    let Some(story) = &answer.incident else {
        let (from, to) = (long(answer.from), long(answer.to));
        return format!("No incident{} is known from {from} to {to}.\n", clean(&answer.about));
    };
    let mut page = Paper { columns: style.columns.min(WIDEST), text: String::new() };
    let ago = match (now.0 - story.ended.0) as f64 / 1000.0 {
        seconds if seconds >= 0.0 => format!(" ({} ago)", spoken(seconds)),
        _ => String::new(),
    };
    page.text += &style.paint(&format!("Incident of {}{ago}", long(story.began)), Tone::Strong);
    page.text.push('\n');
    page.add("First", &first(story));
    // The only one that was first is not said twice.
    let is_said = |line: &watch::incident::story::StoryLine| {
        story.first.len() == 1 && line.kind == LineKind::Change && story.first[0].text == line.text
    };
    for line in story.lines.iter().filter(|line| !is_said(line)) {
        page.add(&local_time(line.time, "%H:%M:%S"), &format!("{} [{}]", line.text, line.source));
    }
    for advice in &story.to_do {
        page.add("To do", advice);
    }
    if !story.not_recorded.is_empty() {
        page.add("Unknown", &format!("not recorded: {}", story.not_recorded.join("; ")));
    }
    page.text
}

/// What changed first, and between which times.
fn first(story: &Story) -> String {
    let time = |time| local_time(time, "%H:%M:%S");
    let sources: Vec<String> = story.first.iter().map(|fact| fact.source.to_string()).collect();
    let source = match &sources[..] {
        [one, others @ ..] if others.iter().all(|other| other == one) => one.clone(),
        several => several.join("; "),
    };
    let when = match story.first.iter().map(|fact| fact.not_before).min() {
        Some(from) if time(from) != time(story.began) && story.began.0 - from.0 < 60_000 => {
            format!("between {} and {}", time(from), time(story.began))
        }
        _ => time(story.began),
    };
    format!("{when}: {} [{source}]", story.headline)
}

struct Paper {
    columns: usize,
    text: String,
}

impl Paper {
    /// A word in front, and a text that goes on below itself.
    fn add(&mut self, front: &str, text: &str) {
        let lines = wrapped(&clean(text), self.columns.saturating_sub(TIME).max(20));
        for (n, line) in lines.iter().enumerate() {
            let front = if n == 0 { front } else { "" };
            self.text += format!("{front:<TIME$}{line}").trim_end();
            self.text.push('\n');
        }
    }
}

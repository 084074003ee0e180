//! Operations of a process without the agent, as tt-metal's Inspector says on demand.

use super::{DetailLine, heading};
use crate::overlay::InspectorAnswer;
use crate::paint::{Tone, wrapped};
use crate::state::{Effect, TopState};
use model::Process;
use show::operations;
use show::style::Style;
use show::text::{clean, width as columns};

const ASKING: &str = "asking tt-metal's Inspector: an answer takes 2 s at the most";
const HINT: &str =
    "unknown: without ttmon's agent. i: ask tt-metal's Inspector, which delays launches for some milliseconds";
const RECORDED: &str = "ttmon's agent records the operations of this process: nothing is asked";
const REPLAYED: &str = "unknown: a recording cannot be asked";

/// What was asked and answered, or how to ask.
pub fn lines(state: &TopState, process: &Process, width: usize, lines: &mut Vec<DetailLine>) {
    let asked = state.inspection.as_ref().filter(|inspection| inspection.pid == process.pid);
    if !process.operations.is_empty() {
        return;
    }
    let Some(asked) = asked else {
        heading("Operations", lines);
        let text = why_not(state, process).unwrap_or_else(|| HINT.into());
        lines
            .extend(wrapped(&text, width.saturating_sub(2)).into_iter().map(|text| (format!("  {text}"), Tone::Faint)));
        return;
    };
    heading(&format!("Operations, asked at {} (i: again)", state.local(asked.asked_at).strftime("%H:%M:%S")), lines);
    let width = width.saturating_sub(2);
    let (text, tone) = match &asked.answer {
        InspectorAnswer::Pending => (ASKING.to_owned(), Tone::Faint),
        InspectorAnswer::Refused(why) => (clean(why).into_owned(), Tone::Warning),
        InspectorAnswer::Known(list) => {
            let style = Style { columns: width, rows: None, color: false, unicode: state.theme.unicode };
            let text = operations::text(list, &style);
            for line in text.lines() {
                // A row of the table fits; a sentence may not.
                let rows = if columns(line) <= width { vec![line.to_owned()] } else { wrapped(line, width) };
                lines.extend(rows.into_iter().map(|row| (format!("  {row}"), Tone::Plain)));
            }
            return;
        }
    };
    lines.extend(wrapped(&text, width).into_iter().map(|text| (format!("  {text}"), tone)));
}

/// Asks, once for each sample at the most, or says why not.
pub fn ask(state: &mut TopState, pid: u32) {
    let Some(process) = state.snapshot().processes.iter().find(|process| process.pid == pid) else { return };
    if let Some(why) = why_not(state, process) {
        state.notice = Some(why);
        return;
    }
    let is_pending = state.inspection.as_ref().is_some_and(|asked| {
        asked.pid == pid
            && (asked.answer == InspectorAnswer::Pending || asked.asked_at == state.latest.snapshot.taken_at)
    });
    if !is_pending {
        let started_at = process.started_at;
        state.effects.push(Effect::Inspect { pid, started_at });
    }
}

/// Why it cannot be asked, or need not be.
fn why_not(state: &TopState, process: &Process) -> Option<String> {
    if !process.operations.is_empty() {
        Some(RECORDED.into())
    } else if state.replay.is_some() {
        Some(REPLAYED.into())
    } else if state.hosts.is_some() {
        Some(format!("unknown: it is on another machine. Run `ttmon ops {}` there", process.pid))
    } else {
        None
    }
}

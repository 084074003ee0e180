//! One buffer, with all that is known of it.

use super::rows::{Key, is_buffer};
use crate::paint::{Buffer, Rect, Tone, clear, frame, put};
use crate::state::TopState;
use model::Bytes;
use show::command::from_script;
use show::memory::draw::age;
use show::memory::view::{Buffer as Live, View};

/// Facts, and the frame around.
const HEIGHT: u16 = 11;
const NAMES: u16 = 11;

/// Lies over the list, and over more where that is low.
pub fn draw(state: &TopState, view: &View, key: &Key, area: Rect, list: Rect, buf: &mut Buffer) {
    let height = HEIGHT.min(area.height);
    let y = list.y.min(area.bottom().saturating_sub(height));
    let area = Rect { y, height, ..area };
    clear(buf, area);
    let inner = frame(buf, area, "Buffer (Up, Down: others, Esc: close)", &state.theme);
    let end = inner.right();
    let Some(buffer) = view.buffers.iter().find(|buffer| is_buffer(buffer, key)) else {
        let text = "freed, or no longer among the listed buffers";
        put(buf, inner.x.saturating_add(1), inner.y, end, text, state.theme.style(Tone::Warning));
        return;
    };
    let facts = facts(buffer, view, state.theme.glyphs().absent);
    for ((name, text), y) in facts.iter().zip(inner.top()..inner.bottom()) {
        let x = inner.x.saturating_add(1);
        put(buf, x, y, end, name, state.theme.style(Tone::Faint));
        let tone = if *name == "Label" { Tone::Strong } else { Tone::Plain };
        put(buf, x.saturating_add(NAMES), y, end, text, state.theme.style(tone));
    }
}

fn facts(buffer: &Live, view: &View, absent: &str) -> Vec<(&'static str, String)> {
    let or_absent = |text: Option<String>| text.unwrap_or_else(|| absent.into());
    let exactly = |bytes: Bytes| match bytes.0 {
        0..1000 => bytes.to_string(),
        n => format!("{bytes} ({n} bytes)"),
    };
    let holder = view.processes.iter().find(|holder| Some(holder.pid) == buffer.pid);
    let command = holder.and_then(|holder| holder.command.as_deref().map(from_script).or(holder.name.as_deref()));
    let owner = buffer.pid.map(|pid| format!("pid {pid}  {}", command.unwrap_or(absent)));
    let user = holder.and_then(|holder| holder.user.as_deref()).map(|user| format!("  user {user}"));
    let chips = match &buffer.devices[..] {
        [] => "one of its process; which one is not known".to_owned(),
        [one] => one.clone(),
        several => format!("{}, the same on each", several.join(", ")),
    };
    let asked = buffer.logical_bytes.map(|asked| {
        let more = buffer.bytes.and_then(|bytes| bytes.0.checked_sub(asked.0)).filter(|more| *more > 0);
        let more = more.map(|more| format!(", {} more reserved", Bytes(more)));
        format!("{}{}", exactly(asked), more.unwrap_or_default())
    });
    let bank = buffer.bank_bytes.map(|bytes| {
        let banks = buffer
            .banks
            .map(|banks| if banks == 1 { " in 1 bank".into() } else { format!(" in each of {banks} banks") });
        format!("{}{}", exactly(bytes), banks.unwrap_or_default())
    });
    let sign = if buffer.address_is_relative { "+" } else { "" };
    let end = buffer.bank_bytes.and_then(|bytes| buffer.address.checked_add(bytes.0));
    let address = match end {
        Some(end) => format!("{sign}{:#x} up to {sign}{end:#x}, in every bank that has it", buffer.address),
        None => format!("{sign}{:#x}", buffer.address),
    };
    vec![
        ("Kind", buffer.kind.to_uppercase()),
        ("Label", or_absent(buffer.label.clone())),
        ("Owner", or_absent(owner) + &user.unwrap_or_default()),
        ("Chips", chips),
        ("Size", or_absent(buffer.bytes.map(exactly)) + if buffer.devices.len() > 1 { " on each" } else { "" }),
        ("Asked for", or_absent(asked)),
        ("Per bank", or_absent(bank)),
        ("Address", address),
        ("Age", or_absent(buffer.age_seconds.map(age))),
    ]
}

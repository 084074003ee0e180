//! A device in a small cell: its number, and how high one figure is. The figure is that of the first chart.

use super::{figures, selection};
use crate::paint::{cell, put};
use crate::state::State;
use crate::theme::Tone;
use model::{Bytes, Device, Metric, State as DeviceState};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use show::text::Align;

const VALUE: u16 = 4;
/// From little to much.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '#'];

pub fn draw(state: &State, device: &Device, names: usize, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let names = names.max(2);
    let (mark, tone) = selection(state, device);
    let name = figures::name(device, theme);
    let name = format!("{mark}{name:>width$}", width = names);
    let x = put(buf, area.x, y, end, &name, theme.style(tone)) + 1;
    let room = end.saturating_sub(x);
    let metric = state.settings.charts.first().copied().unwrap_or(Metric::Power);
    let of_memory = matches!(metric, Metric::DramUsed | Metric::L1Used);
    // The memory of a remote chip is known, though the chip itself cannot answer.
    let speaks = device.state == DeviceState::Ok && !figures::is_stale(device);
    let is_known = speaks || (of_memory && device.state == DeviceState::Remote);
    if !is_known {
        let word = brief(device.state);
        cell(buf, (x, y), room, word, Align::Left, theme.style(figures::state_tone(device)), theme);
        return;
    }
    let (share, text) = figure(device, metric, state);
    let block = room.saturating_sub(VALUE + 1).max(1);
    let glyphs = theme.glyphs();
    let (glyph, style) = match share {
        Some(share) => {
            let levels = if theme.unicode { LEVELS } else { ASCII_LEVELS };
            (levels[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)], theme.heat(share))
        }
        None => (glyphs.unknown, theme.style(Tone::Faint)),
    };
    for x in x..x.saturating_add(block).min(end) {
        put(buf, x, y, end, glyph.encode_utf8(&mut [0; 4]), style);
    }
    let x = x.saturating_add(block + 1);
    let tone = if text == glyphs.absent { Tone::Faint } else { Tone::Plain };
    cell(buf, (x, y), VALUE.min(end.saturating_sub(x)), &text, Align::Right, theme.style(tone), theme);
}

/// A state in six columns.
fn brief(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Resetting => "reset",
        DeviceState::NoDriver => "driver",
        // Its readings are old.
        DeviceState::Ok => "old",
        state => state.name(),
    }
}

/// The figure as a part of what it can be, where that is known, and in four columns.
fn figure(device: &Device, metric: Metric, state: &State) -> (Option<f64>, String) {
    let part = |value: Option<f64>, limit: Option<f64>| Some(value? / limit.filter(|limit| *limit > 0.0)?);
    let theme = &state.theme;
    let absent = || theme.glyphs().absent.to_owned();
    let memory = &device.memory;
    let bytes = |bytes: Option<Bytes>| bytes.map_or_else(absent, brief_bytes);
    match metric {
        Metric::Power => {
            let share = part(device.power.map(|v| v.0), device.power_max.map(|v| v.0));
            (share, device.power.map_or_else(absent, |v| format!("{:.0}W", v.0)))
        }
        Metric::AsicTemp => {
            let share = part(device.asic_temp.map(|v| v.0), device.asic_temp_max.map(|v| v.0));
            let text = device.asic_temp.map_or_else(absent, |_| figures::temperature(device, state, false).0);
            (share, text.replace(['C', 'F'], ""))
        }
        Metric::Aiclk => {
            let share =
                part(device.aiclk.map(|v| f64::from(v.0)), device.arch.map(|a| f64::from(figures::full_clock(a))));
            (share, device.aiclk.map_or_else(absent, |v| v.0.to_string()))
        }
        Metric::Fan => (None, device.fan.map_or_else(absent, |v| v.0.to_string())),
        Metric::DramUsed => (figures::part(device, memory.dram_used, memory.dram_total).0, bytes(memory.dram_used)),
        Metric::L1Used => (figures::part(device, memory.l1_used, memory.l1_total).0, bytes(memory.l1_used)),
        Metric::HostToDevice => (None, bytes(device.pcie.host_to_device.map(|v| Bytes(v.0.max(0.0) as u64)))),
        Metric::DeviceToHost => (None, bytes(device.pcie.device_to_host.map(|v| Bytes(v.0.max(0.0) as u64)))),
    }
}

/// `12G`, `5.2G`, `980M`: in four columns.
fn brief_bytes(bytes: Bytes) -> String {
    let text = bytes.short();
    if text.len() <= usize::from(VALUE) {
        return text;
    }
    let (number, unit) = text.split_at(text.len() - 1);
    match (number.parse::<f64>(), unit) {
        (Ok(value), unit) if value < 999.5 => format!("{value:.0}{unit}"),
        (Ok(value), "B") => format!("{:.1}K", value / 1024.0),
        (Ok(value), "K") => format!("{:.1}M", value / 1024.0),
        (Ok(value), "M") => format!("{:.1}G", value / 1024.0),
        (Ok(value), "G") => format!("{:.1}T", value / 1024.0),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_amount_fits_four_columns() {
        for shift in 0..44 {
            for bytes in [1u64 << shift, (1 << shift) * 3 / 2, ((1u64 << shift) * 1000) >> 10, (1 << shift) - 1] {
                assert!(brief_bytes(Bytes(bytes)).len() <= 4, "{bytes}: {}", brief_bytes(Bytes(bytes)));
            }
        }
        assert_eq!(brief_bytes(Bytes(13_314_398_618)), "12G");
        assert_eq!(brief_bytes(Bytes(5_600_000_000)), "5.2G");
        assert_eq!(brief_bytes(Bytes(1000 << 20)), "1.0G");
    }
}

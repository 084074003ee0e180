//! A device in a small cell: how high one figure is.

use super::figures;
use crate::paint::{Align, Buffer, Tone, cell, put};
use crate::state::TopState;
use crate::unit_text::UnitText;
use model::Device;
use model::figure::device::UTILIZATION;
use model::figure::{Field, Judge};
use show::activity::utilization;
use show::text::width;

#[derive(Debug, Clone, PartialEq)]
pub struct ChipFigure {
    /// As a part of what it can be, where that is known.
    pub share: Option<f64>,
    /// From the longest text to the shortest.
    pub texts: Vec<String>,
    pub tone: Tone,
}

impl ChipFigure {
    pub fn of(device: &Device, field: Field<Device>, state: &TopState) -> ChipFigure {
        let share = field.share(device);
        let tone = Tone::of_level(field, device);
        let Some(value) = field.number(device) else {
            return ChipFigure { share, texts: vec![state.theme.glyphs().absent.to_owned()], tone };
        };
        if field.figure == &UTILIZATION {
            let text = utilization(&device.activity, state.theme.glyphs());
            let number = text.trim_end_matches('%').to_owned();
            return ChipFigure { share, texts: vec![text, number], tone };
        }
        let text = UnitText::new(field.figure.unit, state);
        let is_capacity = field.figure.judge == Judge::Capacity;
        let at_least =
            if is_capacity && device.memory.untracked_processes > 0 { state.theme.glyphs().at_least } else { "" };
        let short = format!("{at_least}{}", text.short(value));
        let with_share = share.filter(|_| is_capacity).map(|share| format!("{short} {:.0}%", share * 100.0));
        let mut texts: Vec<String> = with_share.into_iter().collect();
        texts.extend([short, format!("{at_least}{}", text.brief(value))]);
        texts.extend((!field.figure.unit.is_binary()).then(|| text.short_number(value)));
        texts.dedup();
        ChipFigure { share, texts, tone }
    }

    /// The longest text for so many columns.
    pub fn text(&self, columns: u16) -> &str {
        let fits = |text: &&String| width(text) <= usize::from(columns);
        self.texts.iter().find(fits).or(self.texts.last()).map_or("", |text| text)
    }

    /// The text without anything that can be left out, yet with its unit where there is room for that.
    pub fn brief(&self, columns: u16) -> &str {
        let five = columns.min(5);
        let fits = |text: &&String| width(text) <= usize::from(five) && !text.contains(' ');
        match self.texts.iter().find(fits) {
            Some(text) => text,
            None => self.text(five),
        }
    }
}

/// The figure, or the state of a device that does not give it now.
pub fn draw(state: &TopState, device: &Device, field: Field<Device>, x: u16, y: u16, end: u16, buf: &mut Buffer) {
    if figures::is_known(device, field) {
        draw_level(state, &ChipFigure::of(device, field, state), x, y, end, buf);
    } else {
        let (room, style) = (end.saturating_sub(x), state.theme.style(figures::state_tone(device)));
        cell(buf, (x, y), room, figures::brief_state(device.state, room), Align::Left, style, &state.theme);
    }
}

/// A block as high as the figure, and the figure.
pub fn draw_level(state: &TopState, figure: &ChipFigure, x: u16, y: u16, end: u16, buf: &mut Buffer) {
    let theme = &state.theme;
    let style = theme.style(figure.tone);
    let room = end.saturating_sub(x);
    let text = if room >= 12 { figure.text(room - 4) } else { figure.brief(room.saturating_sub(2)) };
    let taken = (width(text) as u16).min(room);
    let glyph = theme.level(figure.share);
    let at = end.saturating_sub(taken).max(x);
    for x in x..end.saturating_sub(taken + 1) {
        put(buf, x, y, end, glyph.encode_utf8(&mut [0; 4]), style);
    }
    cell(buf, (at, y), taken, text, Align::Left, style, theme);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TopSettings;
    use model::figure::device::kept_in_history;
    use show::example;

    fn texts(device: &Device, settings: TopSettings) -> String {
        let state = TopState::new(settings, true);
        let text = |field| {
            let figure = ChipFigure::of(device, field, &state);
            let share = figure.share.map_or("–".into(), |share| format!("{share:.2}"));
            format!("{share} {:?} {:?}\n", figure.texts, figure.tone)
        };
        kept_in_history().map(text).collect()
    }

    #[test]
    fn every_figure_is_a_part_of_its_limit() {
        let machine = example::machine();
        expect_test::expect![[r#"
            0.60 ["54°C", "54°", "54"] Good
            – ["2068 rpm", "2068"] Plain
            0.43 ["65W", "65"] Good
            1.00 ["1350 MHz", "1350"] Good
            0.62 ["≥62%", "≥62"] Good
            – ["3120/s", "3120"] Plain
            0.10 ["3.0G/s", "3.0G"] Buffers
            0.00 ["4.3M/s", "4.3M"] Buffers
            0.39 ["≥12.4G 39%", "≥12.4G", "≥12G"] Good
            0.14 ["≥25.3M 14%", "≥25.3M", "≥25M"] Good
            – ["–"] Faint
        "#]]
        .assert_eq(&texts(&machine.devices[0], TopSettings::default()));
        let nothing = Device::new(model::DeviceId::Local(0));
        assert!(texts(&nothing, TopSettings::default()).lines().all(|line| line == r#"– ["–"] Faint"#));
        let fahrenheit = TopSettings { fahrenheit: true, ..TopSettings::default() };
        assert!(texts(&machine.devices[0], fahrenheit).contains("129°F"));
    }
}

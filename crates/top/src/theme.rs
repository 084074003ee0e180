//! Colours by what they mean, and characters by what the terminal can show.

use crate::screen::Color::{Indexed, Reset};
use crate::screen::{Color, Modifier, Style};
use show::style::Glyphs;
pub use show::style::Tone;

model::named! {
    /// As the configuration spells it.
    pub enum Scheme {
        Dark = "dark",
        Light = "light",
        HighContrast = "high-contrast",
        ColourBlind = "colour-blind",
        Monochrome = "monochrome",
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Theme {
    pub scheme: Scheme,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

impl Theme {
    pub fn glyphs(&self) -> &'static Glyphs {
        Glyphs::of(self.unicode)
    }

    pub fn style(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        if self.scheme == Scheme::Monochrome {
            return match tone {
                Tone::Plain | Tone::Border | Tone::Good | Tone::Buffers | Tone::Second | Tone::Third => plain,
                Tone::Faint | Tone::Free | Tone::Reserved => plain.add_modifier(Modifier::DIM),
                Tone::Strong | Tone::Title | Tone::Warning => bold,
                Tone::Critical => bold.add_modifier(Modifier::UNDERLINED),
                Tone::Selected | Tone::Key => plain.add_modifier(Modifier::REVERSED),
                Tone::Tagged => bold.add_modifier(Modifier::ITALIC),
            };
        }
        let c = self.colors();
        match tone {
            Tone::Plain => plain.fg(c.text),
            Tone::Faint | Tone::Free => plain.fg(c.faint),
            Tone::Reserved => plain.fg(c.reserved),
            Tone::Strong => bold.fg(c.text),
            Tone::Title => bold.fg(c.title),
            Tone::Border => plain.fg(c.border),
            Tone::Good => plain.fg(c.good),
            Tone::Warning => plain.fg(c.warning),
            Tone::Critical => bold.fg(c.bad),
            Tone::Selected => plain.fg(c.selected.0).bg(c.selected.1),
            Tone::Tagged => bold.fg(c.warning),
            Tone::Key => plain.fg(c.key.0).bg(c.key.1),
            Tone::Buffers => plain.fg(c.series[0]),
            Tone::Second => plain.fg(c.series[1]),
            Tone::Third => plain.fg(c.series[2]),
        }
    }

    /// A block as high as a part of one.
    pub fn level(&self, share: Option<f64>) -> char {
        let levels = if self.unicode { "▁▂▃▄▅▆▇█" } else { ".:-=+*%#" };
        let at = share.map(|share| ((share.clamp(0.0, 1.0) * 8.0) as usize).min(7));
        at.and_then(|at| levels.chars().nth(at)).unwrap_or(self.glyphs().unknown)
    }

    /// What is in front of a chip.
    pub fn mark(&self, is_selected: bool) -> &'static str {
        if is_selected { self.glyphs().selected } else { " " }
    }

    /// How a part of one is drawn in a heat map: bright is much. Without colours, high is much.
    pub fn heat(&self, share: f64) -> (char, Style) {
        if self.scheme == Scheme::Monochrome {
            return (self.level(Some(share)), Style::new());
        }
        let at = (share.clamp(0.0, 1.0) * HEAT.len() as f64) as usize;
        let glyph = if self.unicode { '█' } else { self.level(Some(share)) };
        (glyph, Style::new().fg(Indexed(HEAT[at.min(HEAT.len() - 1)])))
    }

    /// The colour of the n-th line of a chart.
    pub fn series(&self, n: usize) -> Style {
        match self.scheme {
            Scheme::Monochrome => Style::new(),
            _ => {
                let series = self.colors().series;
                Style::new().fg(series[n % series.len()])
            }
        }
    }

    fn colors(&self) -> &'static Colors {
        match self.scheme {
            Scheme::Light => &LIGHT,
            Scheme::HighContrast => &HIGH_CONTRAST,
            Scheme::ColourBlind => &COLOUR_BLIND,
            Scheme::Dark | Scheme::Monochrome => &DARK,
        }
    }
}

/// From little to much, from dark to bright: people who do not see red and green apart see it too.
const HEAT: [u8; 9] = [54, 61, 67, 73, 79, 114, 150, 191, 227];

#[derive(Debug)]
struct Colors {
    text: Color,
    faint: Color,
    reserved: Color,
    title: Color,
    border: Color,
    good: Color,
    warning: Color,
    bad: Color,
    selected: (Color, Color),
    key: (Color, Color),
    series: [Color; 8],
}

const DARK: Colors = Colors {
    text: Reset,
    faint: Indexed(246),
    reserved: Indexed(238),
    title: Indexed(80),
    border: Indexed(240),
    good: Indexed(114),
    warning: Indexed(221),
    bad: Indexed(203),
    selected: (Indexed(231), Indexed(24)),
    key: (Indexed(233), Indexed(80)),
    series: [
        Indexed(80),
        Indexed(215),
        Indexed(141),
        Indexed(114),
        Indexed(204),
        Indexed(75),
        Indexed(229),
        Indexed(180),
    ],
};

/// After Okabe and Ito: blue, yellow and vermilion instead of green, yellow and red.
const COLOUR_BLIND: Colors = Colors {
    text: Reset,
    faint: Indexed(246),
    reserved: Indexed(238),
    title: Indexed(117),
    border: Indexed(240),
    good: Indexed(75),
    warning: Indexed(227),
    bad: Indexed(208),
    selected: (Indexed(231), Indexed(24)),
    key: (Indexed(233), Indexed(117)),
    series: [
        Indexed(75),
        Indexed(214),
        Indexed(43),
        Indexed(227),
        Indexed(175),
        Indexed(208),
        Indexed(39),
        Indexed(250),
    ],
};

const LIGHT: Colors = Colors {
    text: Reset,
    faint: Indexed(242),
    reserved: Indexed(250),
    title: Indexed(25),
    border: Indexed(248),
    good: Indexed(28),
    warning: Indexed(130),
    bad: Indexed(160),
    selected: (Indexed(16), Indexed(153)),
    key: (Indexed(231), Indexed(25)),
    series: [Indexed(25), Indexed(130), Indexed(90), Indexed(28), Indexed(161), Indexed(23), Indexed(58), Indexed(94)],
};

/// In the terminal's own shades of the first 16 colours, which its user can choose.
const HIGH_CONTRAST: Colors = Colors {
    text: WHITE,
    faint: GRAY,
    reserved: GRAY,
    title: CYAN,
    border: WHITE,
    good: LIGHT_GREEN,
    warning: LIGHT_YELLOW,
    bad: LIGHT_RED,
    selected: (BLACK, LIGHT_YELLOW),
    key: (BLACK, WHITE),
    series: [LIGHT_CYAN, LIGHT_YELLOW, LIGHT_MAGENTA, LIGHT_GREEN, LIGHT_RED, LIGHT_BLUE, WHITE, YELLOW],
};

const BLACK: Color = Indexed(0);
const YELLOW: Color = Indexed(3);
const CYAN: Color = Indexed(6);
const GRAY: Color = Indexed(7);
const LIGHT_RED: Color = Indexed(9);
const LIGHT_GREEN: Color = Indexed(10);
const LIGHT_YELLOW: Color = Indexed(11);
const LIGHT_BLUE: Color = Indexed(12);
const LIGHT_MAGENTA: Color = Indexed(13);
const LIGHT_CYAN: Color = Indexed(14);
const WHITE: Color = Indexed(15);

#[cfg(test)]
mod tests {
    use super::*;

    /// Red, green and blue of a colour of the usual 256.
    fn rgb(color: Color) -> Option<[f64; 3]> {
        let Indexed(n @ 16..) = color else { return None };
        let level = |n: u8| if n == 0 { 0.0 } else { f64::from(55 + 40 * n) };
        Some(match n {
            232.. => [f64::from(8 + 10 * (n - 232)); 3],
            _ => [level((n - 16) / 36), level((n - 16) / 6 % 6), level((n - 16) % 6)],
        })
    }

    fn linear(value: f64) -> f64 {
        let value = value / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    }

    /// As WCAG computes it.
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let light = |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05;
        let (a, b) = (light(a), light(b));
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn every_text_has_enough_contrast() {
        for (colors, grounds) in
            [(&DARK, [[0.0; 3], [30.0; 3]]), (&COLOUR_BLIND, [[0.0; 3], [30.0; 3]]), (&LIGHT, [[255.0; 3], [250.0; 3]])]
        {
            let texts = [colors.faint, colors.title, colors.good, colors.warning, colors.bad];
            for color in texts.into_iter().chain(colors.series).filter_map(rgb) {
                for ground in grounds {
                    assert!(contrast(color, ground) >= 4.4, "{color:?} {} {colors:?}", contrast(color, ground));
                }
            }
            for (text, ground) in [colors.selected, colors.key] {
                assert!(contrast(rgb(text).unwrap(), rgb(ground).unwrap()) >= 4.5);
            }
        }
    }

    /// As people see it who lack the receptor for green (Viénot, Brettel and Mollon).
    fn without_green([r, g, b]: [f64; 3]) -> [f64; 3] {
        let [r, g, b] = [r, g, b].map(linear);
        [0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b]
    }

    #[test]
    fn good_warning_and_critical_differ_for_everybody_in_the_colour_blind_scheme() {
        let tones = [COLOUR_BLIND.good, COLOUR_BLIND.warning, COLOUR_BLIND.bad].map(|color| rgb(color).unwrap());
        let distance = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        for (n, one) in tones.iter().enumerate() {
            for other in &tones[n + 1..] {
                assert!(distance(without_green(*one), without_green(*other)) > 0.3, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn the_heat_scale_gets_brighter_from_step_to_step() {
        let light = |n: &u8| contrast(rgb(Indexed(*n)).unwrap(), [0.0; 3]);
        assert!(HEAT.iter().map(light).is_sorted(), "{:?}", HEAT.iter().map(light).collect::<Vec<_>>());
        let theme = Theme { scheme: Scheme::Monochrome, unicode: false };
        assert_eq!([0.0, 0.5, 1.0].map(|share| theme.heat(share).0), ['.', '+', '#']);
    }
}

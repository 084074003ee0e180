//! Colours by what they mean, and characters by what the terminal can show.

use ratatui::style::Color::*;
use ratatui::style::{Color, Modifier, Style};
use show::style::Glyphs;
pub use show::style::Tone;

model::named! {
    /// As the configuration spells it.
    pub enum Scheme {
        Dark = "dark",
        Light = "light",
        HighContrast = "high-contrast",
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
            Scheme::Dark | Scheme::Monochrome => &DARK,
        }
    }
}

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
    faint: Indexed(244),
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

const LIGHT: Colors = Colors {
    text: Reset,
    faint: Indexed(244),
    reserved: Indexed(250),
    title: Indexed(25),
    border: Indexed(248),
    good: Indexed(28),
    warning: Indexed(130),
    bad: Indexed(160),
    selected: (Indexed(16), Indexed(153)),
    key: (Indexed(231), Indexed(25)),
    series: [Indexed(25), Indexed(130), Indexed(90), Indexed(28), Indexed(161), Indexed(30), Indexed(58), Indexed(94)],
};

const HIGH_CONTRAST: Colors = Colors {
    text: White,
    faint: Gray,
    reserved: Gray,
    title: Cyan,
    border: White,
    good: LightGreen,
    warning: LightYellow,
    bad: LightRed,
    selected: (Black, LightYellow),
    key: (Black, White),
    series: [LightCyan, LightYellow, LightMagenta, LightGreen, LightRed, LightBlue, White, Yellow],
};

//! One figure of both sides, and how it is written.

use model::figure::Unit;
use serde::Serialize;
use show::activity;
use show::text::{Align, clean, fit};

/// How wide a line is.
const COLUMNS: usize = 80;

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// For people: `device 0 power`.
    pub title: String,
    /// The device; absent for what is of all devices, or of none.
    pub device: Option<String>,
    /// The name of the figure in the table of figures, where it has one.
    pub figure: Option<String>,
    pub operation: Option<String>,
    pub unit: Unit,
    pub a: f64,
    pub b: f64,
    /// As a part of `a`. Absent where that is zero.
    pub change: Option<f64>,
    /// How likely noise alone makes such a difference, given the number of figures. Absent where noise is not known.
    pub p: Option<f64>,
    pub significant: bool,
}

impl Row {
    pub fn text(&self, mark: char) -> String {
        let name = fit(&format!("{mark} {}", clean(&self.title)), COLUMNS - 40, Align::Left, '…');
        let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
        format!(
            "{name}{}  →{}{}",
            right(&number(self.unit, self.a), 14),
            right(&number(self.unit, self.b), 13),
            right(&self.change_text(), 10)
        )
    }

    fn change_text(&self) -> String {
        match self.change {
            Some(change) if change.abs() < 0.0005 => "=".to_owned(),
            None if self.a == self.b => "=".to_owned(),
            Some(change) if change >= 9.995 => format!("× {:.0}", 1.0 + change),
            // Where noise is known, small changes can be real.
            Some(change) if self.p.is_some() && change.abs() < 0.0995 => format!("{:+.1} %", change * 100.0),
            Some(change) => format!("{:+.0} %", change * 100.0),
            None => "new".to_owned(),
        }
    }
}

/// What `b` is more than `a`, as a part of `a`. None where `a` is zero.
pub fn change(a: f64, b: f64) -> Option<f64> {
    (a != 0.0).then(|| (b - a) / a.abs())
}

/// A number with its unit. Times on devices are short.
pub fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds => activity::seconds(value, true),
        unit => unit.number(value),
    }
}

/// `1 figure`, `2 figures`
pub fn figures(count: usize) -> String {
    if count == 1 { "1 figure".to_owned() } else { format!("{count} figures") }
}

/// The headings of columns of rows.
pub fn heading(a: &str, b: &str) -> String {
    let right = |text: &str, columns| fit(text, columns, Align::Right, '…');
    let (a, b) = (right(a, COLUMNS - 26), right(b, 16));
    format!("{a}{b}{}", right("change", 10))
}

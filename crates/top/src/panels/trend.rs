//! A figure of the last minutes in a few characters.

use crate::state::TopState;
use model::figure::Field;
use model::{Device, Timestamp};

/// Characters, and how much time they show: a minute and a half.
const COLUMNS: usize = 18;
const MS_PER_COLUMN: i64 = 5_000;

/// From old to new, as high as its part of the limit or else of the most that is seen. `None` without two samples of it.
pub fn of(state: &TopState, device: &Device, field: Field<Device>) -> Option<String> {
    let series = state.history.series(device, field);
    let now = state.snapshot().taken_at;
    let until = state.history.place(Timestamp(now.0.saturating_add(1)));
    let start = |column: usize| {
        let ago = (COLUMNS - column) as i64 * MS_PER_COLUMN;
        state.history.place(Timestamp(now.0.saturating_add(1).saturating_sub(ago))).min(until)
    };
    let (least, greatest) = series.stretch(start(0)..until).extent.filter(|_| start(0) + 1 < until)?;
    let low = if crate::unit_text::UnitText::new(field.figure.unit, state).begins_at_zero() { 0.0 } else { least };
    let high = field.limit_of(device).unwrap_or(greatest).max(greatest);
    let part = |value: f64| if high > low { (value - low) / (high - low) } else { 0.0 };
    let level = |column: usize| {
        let extent = series.stretch(start(column)..start(column + 1)).extent;
        extent.map_or(' ', |(_, greatest)| state.theme.level(Some(part(greatest))))
    };
    Some((0..COLUMNS).map(level).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TopSettings;
    use model::figure::device::POWER;
    use show::example;
    use watch::moment::Moment;

    #[test]
    fn it_goes_from_old_to_new_and_needs_two_samples() {
        let mut state = TopState::new(TopSettings::default(), true);
        let mut snapshot = example::machine();
        for step in 0..60 {
            snapshot.taken_at.0 += 1000;
            snapshot.devices[0].power = Some(model::Watts(150.0 * f64::from(step) / 59.0));
            state.take(Moment::of(snapshot.clone()));
            let trend = of(&state, &state.devices()[0], POWER.field());
            assert_eq!(trend.is_some(), step > 0);
        }
        let trend = of(&state, &state.devices()[0], POWER.field()).unwrap();
        assert_eq!(trend, "      ▁▂▂▃▄▄▅▆▆▇██");
    }
}

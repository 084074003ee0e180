//! The setup window. What is chosen can be seen at once behind it.

use crate::keys::{self, KeyPress};
pub use crate::overlay::Setup;
use crate::paint::{Align, Buffer, Position, Rect, Tone, cell, clear, columns, fill, frame, inside, put};
use crate::settings::{CHOICES, Choice, ChoiceKind, ChoiceValue, TopSettings, word_label};
use crate::state::{Effect, Overlay, TopState};
use crossterm::event::KeyCode;

const NAMES: u16 = 25;
/// Lines for the words of a list, and all lines below the choices: an explanation, words, keys.
const WORDS: u16 = 3;
const FOOT: u16 = WORDS + 2;

pub fn open(state: &TopState) -> Overlay {
    Overlay::Setup(Setup { before: state.settings.clone(), at: 0, word: 0 })
}

/// Where the window is: to the right, so that most of the screen can be seen behind it.
fn place(area: Rect) -> Rect {
    let width = area.width.min(68);
    let height = area.height.saturating_sub(2).min(CHOICES.len() as u16 + FOOT + 2);
    Rect { x: area.right() - width, y: area.y + 1.min(area.height), width, height }
}

/// The first choice that is drawn, and how many rows there are for them.
fn window(inner: Rect, at: usize) -> (usize, usize) {
    let rows = usize::from(inner.height.saturating_sub(FOOT)).max(1);
    (at.saturating_sub(rows - 1), rows)
}

pub fn draw(state: &TopState, setup: &Setup, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    clear(buf, place(area));
    frame(buf, place(area), "Setup", theme);
    let inner = inside(place(area));
    let (first, rows) = window(inner, setup.at);
    for (n, choice) in CHOICES.iter().enumerate().skip(first).take(rows) {
        let y = inner.y + (n - first) as u16;
        if y >= inner.bottom() {
            break;
        }
        let is_here = n == setup.at;
        let row = Rect { y, height: 1, ..inner };
        if is_here {
            fill(buf, row, theme.style(Tone::Selected));
        }
        let plain = theme.style(if is_here { Tone::Selected } else { Tone::Plain });
        cell(buf, (inner.x + 1, y), NAMES, choice.label, Align::Left, plain, theme);
        let x = inner.x + NAMES + 2;
        let room = inner.right().saturating_sub(x);
        cell(buf, (x, y), room, &choice.text(&state.settings), Align::Left, plain, theme);
    }
    let foot = inner.bottom().saturating_sub(FOOT).max(inner.y);
    let choice = &CHOICES[setup.at.min(CHOICES.len() - 1)];
    put(buf, inner.x + 1, foot, inner.right(), &sentence(choice.help), theme.style(Tone::Faint));
    if let ChoiceKind::SomeOf(words) = choice.kind {
        draw_words(state, setup, words, Rect { y: foot + 1, height: WORDS, ..inner }, buf);
    }
    let keys = match choice.kind {
        ChoiceKind::SomeOf(_) => "Space: on/off, + -: move, Enter: apply, Esc: revert, F12: save",
        _ => "Left, Right: change, Enter: apply, Esc: revert, F12: save",
    };
    put(buf, inner.x + 1, inner.bottom().saturating_sub(1), inner.right(), keys, theme.style(Tone::Faint));
}

/// With a capital letter, as it stands alone.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// All words of a list, those that are on first and in their order. Where there is no room for all, the one under the cursor can
/// be seen.
fn draw_words(state: &TopState, setup: &Setup, words: &'static [&'static str], area: Rect, buf: &mut Buffer) {
    let on = on_words(&CHOICES[setup.at], &state.settings);
    let (mut x, mut line, mut placed) = (area.x + 1, 0, Vec::new());
    for word in ordered(words, &on) {
        let word = word_label(word);
        if x + columns(&word) >= area.right() && x > area.x + 1 {
            (x, line) = (area.x + 1, line + 1);
        }
        placed.push((x, line));
        x += columns(&word) + 2;
    }
    let first = placed.get(setup.word).map_or(0, |(_, line)| (line + 1u16).saturating_sub(area.height));
    for (n, (word, (x, line))) in ordered(words, &on).into_iter().zip(placed).enumerate() {
        let Some(y) = line.checked_sub(first).map(|line| area.y + line).filter(|y| *y < area.bottom()) else {
            continue;
        };
        let tone = match n {
            n if n == setup.word => Tone::Selected,
            n if n < on.len() => Tone::Strong,
            _ => Tone::Faint,
        };
        put(buf, x, y, area.right(), &word_label(word), state.theme.style(tone));
    }
}

fn on_words(choice: &Choice, settings: &TopSettings) -> Vec<&'static str> {
    match (choice.get)(settings) {
        ChoiceValue::Words(words) => words,
        _ => Vec::new(),
    }
}

fn ordered(words: &'static [&'static str], on: &[&'static str]) -> Vec<&'static str> {
    on.iter().copied().chain(words.iter().copied().filter(|word| !on.contains(word))).collect()
}

/// A key was pressed. Nothing closes it.
pub fn press(state: &mut TopState, mut setup: Setup, key: KeyPress) -> Option<Overlay> {
    match key.0 {
        KeyCode::Esc | KeyCode::Char('q') | KeyCode::F(10) => {
            let before = setup.before.clone();
            choose(state, |settings| *settings = before);
            return None;
        }
        KeyCode::Enter | KeyCode::F(2) => return None,
        KeyCode::F(12) => state.effects.push(Effect::Save),
        KeyCode::Left | KeyCode::Char('h') => step(state, &mut setup, -1),
        KeyCode::Right | KeyCode::Char('l') => step(state, &mut setup, 1),
        KeyCode::Char(' ') => toggle(state, &mut setup),
        KeyCode::Char('+') => shift(state, &mut setup, 1),
        KeyCode::Char('-') => shift(state, &mut setup, -1),
        _ => {
            let page = window(inside(place(state.area)), setup.at).1;
            if let Some(to) = keys::scrolled(key, setup.at, page, CHOICES.len() - 1) {
                (setup.at, setup.word) = (to, 0);
            }
        }
    }
    Some(Overlay::Setup(setup))
}

/// A click selects a choice, and a second one changes it. One elsewhere closes the window.
pub fn click(state: &mut TopState, mut setup: Setup, position: Position) -> Option<Overlay> {
    let inner = inside(place(state.area));
    let (first, rows) = window(inner, setup.at);
    let row = usize::from(position.y.saturating_sub(inner.y));
    if inner.contains(position) && row < rows && first + row < CHOICES.len() {
        if setup.at == first + row {
            step(state, &mut setup, 1);
        }
        setup.at = first + row;
    }
    place(state.area).contains(position).then_some(Overlay::Setup(setup))
}

/// Changes settings, and whatever follows from them.
fn choose(state: &mut TopState, change: impl FnOnce(&mut TopSettings)) {
    let interval = state.settings.interval_ms;
    change(&mut state.settings);
    state.set_theme();
    if state.settings.interval_ms != interval {
        state.effects.push(Effect::Interval);
    }
}

/// The next or the previous value, or word of a list.
fn step(state: &mut TopState, setup: &mut Setup, by: isize) {
    let choice = &CHOICES[setup.at];
    let turned = |at: usize, len: usize| (at as isize + by).rem_euclid(len as isize) as usize;
    let value = match (choice.kind, (choice.get)(&state.settings)) {
        (ChoiceKind::Switch, ChoiceValue::Switch(on)) => ChoiceValue::Switch(!on),
        (ChoiceKind::Number(least, most, steps), ChoiceValue::Number(now)) => {
            let next = if by > 0 {
                steps.iter().copied().find(|step| *step > now).unwrap_or(most)
            } else {
                steps.iter().rev().copied().find(|step| *step < now).unwrap_or(least)
            };
            ChoiceValue::Number(next)
        }
        (ChoiceKind::OneOf(words), ChoiceValue::Word(now)) => {
            let at = words.iter().position(|word| *word == now).unwrap_or(0);
            ChoiceValue::Word(words[turned(at, words.len())])
        }
        (ChoiceKind::SomeOf(words), _) => {
            setup.word = turned(setup.word, words.len());
            return;
        }
        _ => return,
    };
    choose(state, |settings| (choice.set)(settings, &value));
}

/// Turns a switch, or a word of a list, on or off.
fn toggle(state: &mut TopState, setup: &mut Setup) {
    let choice = &CHOICES[setup.at];
    let ChoiceKind::SomeOf(words) = choice.kind else { return step(state, setup, 1) };
    let mut on = on_words(choice, &state.settings);
    let Some(word) = ordered(words, &on).get(setup.word).copied() else { return };
    match on.iter().position(|one| *one == word) {
        Some(at) => drop(on.remove(at)),
        None => on.push(word),
    }
    // The cursor stays on the word.
    setup.word = ordered(words, &on).iter().position(|one| *one == word).unwrap_or(0);
    choose(state, |settings| (choice.set)(settings, &ChoiceValue::Words(on)));
}

fn shift(state: &mut TopState, setup: &mut Setup, by: isize) {
    let choice = &CHOICES[setup.at];
    let mut on = on_words(choice, &state.settings);
    let to = setup.word as isize + by;
    if setup.word < on.len() && (0..on.len() as isize).contains(&to) {
        on.swap(setup.word, to as usize);
        setup.word = to as usize;
        choose(state, |settings| (choice.set)(settings, &ChoiceValue::Words(on)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crate::theme::Scheme;
    use crossterm::event::KeyModifiers;
    use expect_test::expect;
    use model::figure::device::{ASIC_TEMP, DRAM_USED, POWER, UTILIZATION};

    fn pressed(state: &mut TopState, keys: &[KeyCode]) {
        for key in keys {
            let Some(Overlay::Setup(setup)) = state.overlay.take() else { panic!("it is closed") };
            state.overlay = press(state, setup, (*key, KeyModifiers::NONE));
        }
    }

    fn opened() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.overlay = Some(open(&state));
        state
    }

    /// With the cursor on a choice.
    fn at(name: &str) -> TopState {
        let mut state = opened();
        let down = CHOICES.iter().position(|choice| choice.name == name).unwrap();
        pressed(&mut state, &vec![KeyCode::Down; down]);
        state
    }

    #[test]
    fn a_choice_is_seen_at_once_and_can_be_undone() {
        let mut state = opened();
        pressed(&mut state, &[KeyCode::Right]);
        assert_eq!((state.settings.theme, state.theme.scheme), (Scheme::Light, Scheme::Light));
        pressed(&mut state, &[KeyCode::Esc]);
        assert_eq!((state.settings.theme, state.theme.scheme), (Scheme::Dark, Scheme::Dark));
        assert_eq!(state.overlay, None);
        let mut state = opened();
        pressed(&mut state, &[KeyCode::Left, KeyCode::Enter]);
        assert_eq!((state.settings.theme, state.overlay), (Scheme::Monochrome, None));
    }

    #[test]
    fn ascii_can_be_turned_off_again() {
        let mut state = at("ascii");
        pressed(&mut state, &[KeyCode::Char(' ')]);
        assert!(!state.theme.unicode);
        pressed(&mut state, &[KeyCode::Char(' ')]);
        assert!(state.theme.unicode);
    }

    #[test]
    fn numbers_go_in_steps_and_the_sampler_gets_them() {
        let mut state = at("interval_ms");
        pressed(&mut state, &[KeyCode::Right, KeyCode::Right]);
        assert_eq!((state.settings.interval_ms, state.effects.last()), (5000, Some(&Effect::Interval)));
        pressed(&mut state, &[KeyCode::Left; 20]);
        assert_eq!(state.settings.interval_ms, 100);
    }

    #[test]
    fn words_of_a_list_can_be_turned_on_and_moved() {
        let mut state = at("charts");
        pressed(&mut state, &[KeyCode::Char(' ')]);
        assert_eq!(state.settings.charts, [POWER.field(), ASIC_TEMP.field(), DRAM_USED.field()]);
        pressed(&mut state, &[KeyCode::Char(' '), KeyCode::Char('-'), KeyCode::Char('-')]);
        assert_eq!(state.settings.charts, [&POWER, &UTILIZATION, &ASIC_TEMP, &DRAM_USED].map(|figure| figure.field()));
    }

    #[test]
    fn the_window_explains_each_choice() {
        let state = at("charts");
        let mut buf = Buffer::empty(Rect { x: 0, y: 0, width: 68, height: 24 });
        let Some(Overlay::Setup(setup)) = &state.overlay else { panic!() };
        draw(&state, setup, buf.area, &mut buf);
        expect![[r#"

            ┌ Setup ───────────────────────────────────────────────────────────┐
            │ Colours                   dark                                   │
            │ ASCII only                off                                    │
            │ Fahrenheit                off                                    │
            │ Update interval           1 s                                    │
            │ History of charts         1 h                                    │
            │ Charts                    Utilization, Power, Temperature, DRAM  │
            │ All devices in one chart  off                                    │
            │ Filled charts             off                                    │
            │ Newest at the left        off                                    │
            │ Process columns           DEV, PID, USER, JOB/POD, DRAM, L1, L1S…│
            │ Sort processes by         DRAM                                   │
            │ Largest first             on                                     │
            │ Process tree              off                                    │
            │ Read only                 off                                    │
            │ Mouse                     on                                     │
            │ The charts of the overview, in their order                       │
            │ Utilization  Power  Temperature  DRAM  Fan  AICLK                │
            │ Programs per second  PCIe to device  PCIe to host  L1            │
            │ GDDR temperature                                                 │
            │ Space: on/off, + -: move, Enter: apply, Esc: revert, F12: save   │
            └──────────────────────────────────────────────────────────────────┘

        "#]]
        .assert_eq(&lines(&buf));
    }

    #[test]
    fn no_label_is_a_key_of_the_configuration_and_each_choice_is_explained() {
        for choice in CHOICES.iter() {
            assert!(!choice.label.contains('_') && choice.label.starts_with(char::is_uppercase), "{}", choice.label);
            assert!(columns(choice.label) <= NAMES, "{}", choice.label);
            let state = at(choice.name);
            let mut buf = Buffer::empty(Rect { x: 0, y: 0, width: 80, height: 30 });
            let Some(Overlay::Setup(setup)) = &state.overlay else { panic!() };
            draw(&state, setup, buf.area, &mut buf);
            let text = lines(&buf);
            assert!(columns(choice.help) <= 65, "it is one line: {}", choice.help);
            assert!(text.contains(choice.label) && text.contains(&sentence(choice.help)), "{text}");
            assert!(!text.contains("_ms") && !text.contains("_seconds"), "{text}");
        }
    }

    #[test]
    fn any_size_will_do() {
        let state = opened();
        let Some(Overlay::Setup(setup)) = &state.overlay else { panic!() };
        for width in (1..100).step_by(7) {
            for height in 1..30 {
                let mut buf = Buffer::empty(Rect { x: 0, y: 0, width, height });
                draw(&state, setup, buf.area, &mut buf);
            }
        }
    }
}

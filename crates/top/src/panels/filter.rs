//! The line in which a filter for processes, machines or events is typed. It works while it is typed; Enter keeps it, Esc brings back the former one.

use crate::keys::KeyPress;
pub use crate::overlay::FilterPrompt as Prompt;
use crate::overlay::FilterSubject;
use crate::paint::{Buffer, Rect, Tone, clear, columns_of, put};
use crate::state::{Overlay, TopState, TopView};
use crossterm::event::{KeyCode, KeyModifiers};
use model::filter::{self, Filter};

/// A filter is no longer than this, and no more of them are remembered.
const LONGEST: usize = 1000;
const REMEMBERED: usize = 100;

const EVENTS_HELP: &str = "words: warning, critical, dev:2, hung; -word: without it   Enter: apply, Esc: revert";
const MACHINES_HELP: &str = "words of name, state or problem; -word: without it   Enter: apply, Esc: revert";

/// What is allowed, as long as nothing is wrong; the shorter the narrower.
const HELP: [&str; 2] = [
    "word  user:me  name~vllm  dram>1G  growth>1M  age<5m  dev:0  a or b  not (a b)   Enter: apply, Esc: revert",
    "user:me name~vllm dram>1G age<5m or not ( )",
];

impl Prompt {
    /// With the filter that is in force, to be changed.
    pub fn new(state: &TopState) -> Prompt {
        let hosts = state.hosts.as_ref().filter(|_| state.view == TopView::Fleet);
        let (subject, filter) = match (hosts, state.view) {
            (Some(hosts), _) => (FilterSubject::Machines, hosts.filter.as_str()),
            (None, TopView::Events) => (FilterSubject::Events, state.chosen_events.filter.as_str()),
            (None, _) => (FilterSubject::Processes, state.table.filter.as_str()),
        };
        let text: Vec<char> = filter.chars().collect();
        let former = (filter.to_owned(), state.table.cursor.key);
        Prompt { subject, cursor: text.len(), text, wrong: None, former, recalled: None }
    }

    fn is_of_processes(&self) -> bool {
        self.subject == FilterSubject::Processes
    }

    fn typed(&self) -> String {
        self.text.iter().collect()
    }

    fn insert(&mut self, c: char) {
        if self.text.len() < LONGEST {
            self.text.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    fn edit(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let with_control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            KeyCode::Char('a') if with_control => self.cursor = 0,
            KeyCode::Char('e') if with_control => self.cursor = self.text.len(),
            KeyCode::Char('u') if with_control => self.remove_back_to(0),
            KeyCode::Char('w') if with_control => {
                let before = &self.text[..self.cursor];
                let blanks = before.iter().rev().take_while(|c| c.is_whitespace()).count();
                let word = before.iter().rev().skip(blanks).take_while(|c| !c.is_whitespace()).count();
                self.remove_back_to(self.cursor - blanks - word);
            }
            KeyCode::Backspace => self.remove_back_to(self.cursor.saturating_sub(1)),
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Char(c) if !with_control && !modifiers.contains(KeyModifiers::ALT) => self.insert(c),
            _ => {}
        }
    }

    fn remove_back_to(&mut self, to: usize) {
        self.text.drain(to..self.cursor);
        self.cursor = to;
    }

    /// Puts another filter of this session in the line; beyond the newest is what was being typed.
    fn recall(&mut self, filters: &[String], older: bool) {
        let at = self.recalled.as_ref().map_or(filters.len(), |(at, _)| *at);
        let to = if older { at.checked_sub(1) } else { Some(at + 1).filter(|to| *to <= filters.len()) };
        let Some(to) = to else { return };
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        self.text = filters.get(to).map_or_else(|| draft.clone(), |filter| filter.chars().collect());
        self.cursor = self.text.len();
        self.recalled = (to < filters.len()).then_some((to, draft));
    }
}

/// The prompt lies over the line above the last, and its help over the last.
pub fn draw(state: &TopState, prompt: &Prompt, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let (theme, end) = (&state.theme, area.right());
    let y = area.bottom().saturating_sub(2).max(area.top());
    clear(buf, Rect { y, height: area.bottom() - y, ..area });
    let label = match prompt.subject {
        FilterSubject::Machines => " Machines: ",
        FilterSubject::Events => " Events: ",
        FilterSubject::Processes => " Filter: ",
    };
    let x = put(buf, area.x, y, end, label, theme.style(Tone::Title));
    let room = usize::from(end.saturating_sub(x));
    for (x, n) in seen(prompt, room).zip(first(prompt, room)..) {
        let c = prompt.text.get(n).copied().unwrap_or(' ');
        let tone = match &prompt.wrong {
            _ if n == prompt.cursor => Tone::Selected,
            Some(wrong) if n >= wrong.at && !wrong.is_incomplete => Tone::Critical,
            _ => Tone::Plain,
        };
        put(buf, end - (room - x) as u16, y, end, c.encode_utf8(&mut [0; 4]), theme.style(tone));
    }
    if y + 1 < area.bottom() {
        let (text, tone) = match &prompt.wrong {
            // Half a filter is no mistake yet.
            Some(wrong) if wrong.is_incomplete => (wrong.to_string(), Tone::Faint),
            Some(wrong) => (wrong.to_string(), Tone::Critical),
            None => {
                let text = match prompt.subject {
                    FilterSubject::Machines => MACHINES_HELP.to_owned(),
                    FilterSubject::Events => EVENTS_HELP.to_owned(),
                    FilterSubject::Processes => help(area.width.into()),
                };
                (text, Tone::Faint)
            }
        };
        put(buf, area.x + 1, y + 1, end, &text, theme.style(tone));
    }
}

/// As much of the help as there is room for: at best with all fields.
fn help(width: usize) -> String {
    let fields: Vec<&str> = Filter::fields().collect();
    let whole = format!("{}  fields: {}", filter::SYNTAX, fields.join(" "));
    let fits = |help: &&str| help.len() + 2 <= width;
    [whole.as_str()].into_iter().chain(HELP).find(fits).unwrap_or(HELP[HELP.len() - 1]).to_owned()
}

/// The first character that is seen, so that the cursor is.
fn first(prompt: &Prompt, room: usize) -> usize {
    let mut used = 1;
    let before = prompt.text[..prompt.cursor].iter().rev();
    let seen = before.take_while(|c| {
        used += columns_of(**c);
        used < room
    });
    prompt.cursor - seen.count()
}

/// Where the characters that are seen begin, the place behind the last one included.
fn seen(prompt: &Prompt, room: usize) -> impl Iterator<Item = usize> {
    let all = &prompt.text[first(prompt, room)..];
    let begins = all.iter().scan(0, |x, c| {
        *x += columns_of(*c);
        Some(*x)
    });
    std::iter::once(0).chain(begins).take_while(move |x| *x < room)
}

/// A key was pressed. Nothing closes it.
pub fn press(state: &mut TopState, mut prompt: Prompt, (code, modifiers): KeyPress) -> Option<Overlay> {
    match code {
        KeyCode::Esc if !prompt.is_of_processes() => {
            set_words(state, prompt.subject, &prompt.former.0);
            return None;
        }
        KeyCode::Esc => {
            state.table.filter = prompt.former.0;
            state.refresh_rows();
            let at = prompt.former.1.and_then(|pid| state.rows.position(pid));
            if let Some(at) = at.filter(|_| state.table.cursor.is_chosen) {
                super::processes::select(state, at);
            }
            return None;
        }
        KeyCode::Enter if !prompt.is_of_processes() => return None,
        KeyCode::Enter if prompt.wrong.is_none() => {
            let text = prompt.typed().trim().to_owned();
            if !text.is_empty() {
                state.table.filters.retain(|filter| *filter != text);
                state.table.filters.push(text.clone());
                let surplus = state.table.filters.len().saturating_sub(REMEMBERED);
                state.table.filters.drain(..surplus);
            }
            state.table.filter = text;
            return None;
        }
        KeyCode::Up if prompt.is_of_processes() => prompt.recall(&state.table.filters, true),
        KeyCode::Down if prompt.is_of_processes() => prompt.recall(&state.table.filters, false),
        _ => prompt.edit(code, modifiers),
    }
    Some(Overlay::Filter(applied(state, prompt)))
}

/// Text came in one piece. Lines become one line.
pub fn paste(state: &mut TopState, text: &str) {
    match state.overlay.take() {
        Some(Overlay::Filter(mut prompt)) => {
            text.trim().chars().for_each(|c| prompt.insert(if c.is_control() { ' ' } else { c }));
            state.overlay = Some(Overlay::Filter(applied(state, prompt)));
        }
        other => state.overlay = other,
    }
}

/// Puts the filter in force, unless something is wrong with it.
fn applied(state: &mut TopState, mut prompt: Prompt) -> Prompt {
    let text = prompt.typed();
    if !prompt.is_of_processes() {
        set_words(state, prompt.subject, &text);
        return prompt;
    }
    prompt.wrong = Filter::parse(&text).err();
    if prompt.wrong.is_none() {
        state.table.filter = text.trim().to_owned();
    }
    state.refresh_rows();
    prompt
}

/// A filter of plain words, for machines or for events.
fn set_words(state: &mut TopState, subject: FilterSubject, filter: &str) {
    let filter = filter.trim().to_owned();
    match (subject, &mut state.hosts) {
        (FilterSubject::Machines, Some(hosts)) => hosts.set_filter(filter),
        (FilterSubject::Events, _) => (state.chosen_events.filter, state.chosen_events.at) = (filter, 0),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::handle;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crossterm::event::{Event, KeyEvent};
    use expect_test::expect;
    use show::example;
    use watch::moment::Moment;

    fn start() -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        state.area = Rect::new(0, 0, 80, 24);
        state.take(Moment { snapshot: example::machine(), ..Moment::default() });
        press_all(&mut state, &[KeyCode::Char('/')]);
        state
    }

    fn press_all(state: &mut TopState, keys: &[KeyCode]) {
        for code in keys {
            handle(state, &Event::Key(KeyEvent::new(*code, KeyModifiers::NONE)));
        }
    }

    fn control(state: &mut TopState, c: char) {
        handle(state, &Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }

    fn type_in(state: &mut TopState, text: &str) {
        press_all(state, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
    }

    fn pids(state: &TopState) -> Vec<u32> {
        state.rows.from(0).map(|(row, ..)| row.pid).collect()
    }

    fn typed(state: &TopState) -> String {
        match &state.overlay {
            Some(Overlay::Filter(prompt)) => prompt.typed(),
            other => panic!("{other:?}"),
        }
    }

    /// With the edge of the screen, so that blanks at the beginning are seen.
    fn drawn(state: &TopState, columns: u16) -> String {
        let Some(Overlay::Filter(prompt)) = &state.overlay else { panic!("no prompt") };
        let mut buf = Buffer::empty(Rect::new(0, 0, columns, 2));
        draw(state, prompt, buf.area, &mut buf);
        lines(&buf).lines().map(|line| format!("|{line}\n")).collect()
    }

    #[test]
    fn a_filter_works_while_it_is_typed() {
        let mut state = start();
        assert_eq!(pids(&state), [4711, 81, 5120]);
        type_in(&mut state, "not dev:2");
        assert_eq!(pids(&state), [4711, 5120]);
        press_all(&mut state, &[KeyCode::Enter]);
        assert_eq!((state.table.filter.as_str(), state.overlay.is_none()), ("not dev:2", true));
    }

    #[test]
    fn escape_brings_back_the_former_filter_and_selection() {
        let mut state = start();
        type_in(&mut state, "dram>0");
        press_all(&mut state, &[KeyCode::Enter, KeyCode::Down]);
        assert_eq!(state.table.cursor.key, Some(81));
        type_in(&mut state, "/ pid:4711");
        assert_eq!((pids(&state), state.table.cursor.key), (vec![4711], Some(4711)));
        press_all(&mut state, &[KeyCode::Esc]);
        assert_eq!((state.table.filter.as_str(), state.table.cursor.key), ("dram>0", Some(81)));
        press_all(&mut state, &[KeyCode::Esc]);
        assert_eq!(state.table.filter, "", "and once more removes it");
        assert!(state.effects.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_and_the_last_valid_filter_stays() {
        let mut state = start();
        type_in(&mut state, "pid:81 drm>1");
        expect![[r#"
            | Filter: pid:81 drm>1
            | at 8: unknown field "drm" (did you mean dram?); expected on
        "#]]
        .assert_eq(&drawn(&state, 60));
        assert_eq!((state.table.filter.as_str(), pids(&state)), ("pid:81 drm", vec![]));
        press_all(&mut state, &[KeyCode::Enter]);
        assert!(state.overlay.is_some(), "it is not kept like this");
    }

    #[test]
    fn the_line_can_be_edited() {
        let mut state = start();
        use KeyCode::{Backspace, Char, Delete, End, Home, Left, Right};
        type_in(&mut state, "pxid:81");
        press_all(&mut state, &[Home, Right, Delete, End, Backspace, Left, Right, Char('2')]);
        assert_eq!(typed(&state), "pid:82");
        type_in(&mut state, " user:me");
        control(&mut state, 'w');
        assert_eq!(typed(&state), "pid:82 ");
        press_all(&mut state, &[Left, Left]);
        control(&mut state, 'u');
        assert_eq!(typed(&state), "2 ");
        handle(&mut state, &Event::Paste("pid:81\nor pid:\u{1b}8".into()));
        assert_eq!(typed(&state), "pid:81 or pid: 82 ");
    }

    #[test]
    fn earlier_filters_come_back() {
        let mut state = start();
        for filter in ["pid:1", "pid:2", "pid:1"] {
            control(&mut state, 'u');
            type_in(&mut state, filter);
            press_all(&mut state, &[KeyCode::Enter, KeyCode::Char('/')]);
        }
        control(&mut state, 'u');
        type_in(&mut state, "new");
        let mut seen = Vec::new();
        for key in [KeyCode::Up, KeyCode::Up, KeyCode::Up, KeyCode::Down, KeyCode::Down, KeyCode::Down] {
            press_all(&mut state, &[key]);
            seen.push(typed(&state));
        }
        assert_eq!(seen, ["pid:1", "pid:2", "pid:2", "pid:1", "new", "new"]);
    }

    #[test]
    fn a_long_line_scrolls_with_the_cursor_and_help_fits() {
        let mut state = start();
        expect![[r#"
            | Filter:
            | user:me name~vllm dram>1G age<5m or not ( )
        "#]]
        .assert_eq(&drawn(&state, 50));
        expect![[r#"
            | Filter:
            | word  user:me  name~vllm  dram>1G  growth>1M  age<5m  dev:0  a or b  not (a b)   Enter: apply, Esc: revert
        "#]]
        .assert_eq(&drawn(&state, 120));
        type_in(&mut state, "name~日本語日本語 or name~abcdefghij");
        assert_eq!(drawn(&state, 30).lines().next(), Some("| Filter:  or name~abcdefghij"));
        press_all(&mut state, &[KeyCode::Home]);
        assert_eq!(drawn(&state, 30).lines().next(), Some("| Filter: name~日本語日本語 or"));
        for columns in 1..30 {
            drawn(&state, columns);
            let Some(Overlay::Filter(prompt)) = &state.overlay else { panic!("no prompt") };
            for rows in 1..3 {
                let mut buf = Buffer::empty(Rect::new(0, 0, columns, rows));
                draw(&state, prompt, Rect::new(0, 0, 80, 24), &mut buf);
            }
        }
    }
}

//! What people call the buffers that a thread makes: a stack of labels per thread, of which the innermost counts.

use ledger::book::LABEL;
use std::cell::RefCell;

/// Labels of one thread that are kept. Deeper ones are counted only, and the innermost kept one counts for them.
const DEPTH: usize = 16;

struct Stack {
    depth: usize,
    labels: [Label; DEPTH],
}

#[derive(Clone, Copy)]
struct Label {
    len: usize,
    bytes: [u8; LABEL],
}

impl Stack {
    fn current(&self) -> &[u8] {
        let innermost = self.depth.min(DEPTH).checked_sub(1).and_then(|at| self.labels.get(at));
        innermost.and_then(|label| label.bytes.get(..label.len)).unwrap_or_default()
    }
}

thread_local! {
    // Nothing to destroy, and so there as long as the thread.
    static STACK: RefCell<Stack> = const { RefCell::new(Stack { depth: 0, labels: [Label { len: 0, bytes: [0; LABEL] }; DEPTH] }) };
}

/// Labels the buffers that this thread makes from now on, with as much of the text as fits.
pub fn push(text: &[u8]) {
    STACK.with(|stack| {
        let Ok(mut stack) = stack.try_borrow_mut() else { return };
        let depth = stack.depth;
        if let Some(label) = stack.labels.get_mut(depth) {
            let text = fitting(text);
            if let Some(into) = label.bytes.get_mut(..text.len()) {
                into.copy_from_slice(text);
                label.len = text.len();
            }
        }
        stack.depth = depth.saturating_add(1);
    });
}

/// Goes back to the label before the last [`push`].
pub fn pop() {
    STACK.with(|stack| {
        if let Ok(mut stack) = stack.try_borrow_mut() {
            stack.depth = stack.depth.saturating_sub(1);
        }
    });
}

/// Shows the label that counts now; without one it is empty.
#[inline]
pub(crate) fn with_current<T>(look: impl FnOnce(&[u8]) -> T) -> T {
    STACK.with(|stack| match stack.try_borrow() {
        Ok(stack) => look(stack.current()),
        Err(_) => look(b""),
    })
}

/// The beginning of a text that fits, without half a character at its end.
pub(crate) fn fitting(text: &[u8]) -> &[u8] {
    let mut end = text.len().min(LABEL);
    while end < text.len() && end > 0 && text.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current() -> String {
        with_current(|label| String::from_utf8(label.to_vec()).unwrap())
    }

    #[test]
    fn the_innermost_label_counts() {
        assert_eq!(current(), "");
        push(b"model");
        push("kv-cache".as_bytes());
        assert_eq!(current(), "kv-cache");
        pop();
        assert_eq!(current(), "model");
        pop();
        pop();
        assert_eq!(current(), "");
    }

    #[test]
    fn a_long_label_is_cut_between_characters() {
        push(format!("{}äb", "x".repeat(LABEL - 1)).as_bytes());
        assert_eq!(current(), "x".repeat(LABEL - 1));
        push(format!("{}ä", "x".repeat(LABEL - 2)).as_bytes());
        assert_eq!(current(), format!("{}ä", "x".repeat(LABEL - 2)));
        pop();
        pop();
    }

    #[test]
    fn labels_too_deep_to_keep_still_come_off_in_order() {
        (0..DEPTH + 5).for_each(|depth| push(depth.to_string().as_bytes()));
        assert_eq!(current(), (DEPTH - 1).to_string());
        (0..DEPTH + 4).for_each(|_| pop());
        assert_eq!(current(), "0");
        pop();
    }

    #[test]
    fn another_thread_has_labels_of_its_own() {
        push(b"here");
        std::thread::spawn(|| assert_eq!(current(), "")).join().unwrap();
        pop();
    }
}

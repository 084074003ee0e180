//! How urgent the problems of a machine are.

named! {
    /// How urgent the problems of a machine are, in the words of every list of machines; the worst sorts first.
    #[derive(PartialOrd, Ord)]
    pub enum Need {
        /// It does not answer: its problems are not known.
        Unreachable = "no answer",
        /// A device is hung, lost or silent, or a critical alert fires.
        Critical = "critical",
        /// A device resets, has no driver, is too hot or full, an alert fires, or what is known is old.
        Warning = "warning",
        /// It was asked, and has not answered yet.
        Waiting = "waiting",
        Fine = "ok",
    }
}

#[cfg(test)]
mod tests {
    use super::Need;
    use crate::{Judgement, Severity, State};

    #[test]
    fn its_words_are_those_of_alerts_judgements_and_devices() {
        for (need, severity) in [(Need::Critical, Severity::Critical), (Need::Warning, Severity::Warning)] {
            assert_eq!(need.name(), severity.name());
        }
        assert_eq!(Need::Critical.name(), Judgement::Critical.name());
        assert_eq!(Need::Fine.name(), State::Ok.name());
    }
}

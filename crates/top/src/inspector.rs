//! Asks tt-metal's Inspector of a process, when a key asks for it, in a thread of its own.
//!
//! The Inspector copies its tables under locks of the workload, so it is never asked by looking alone.

use super::overlay::{Inspection, InspectorAnswer};
use super::state::TopState;
use model::Timestamp;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use watch::args::MachineArgs;
use watch::operations;

/// Requests that are under way, and their answers.
pub struct Inspectors {
    /// Can be read when there is an answer.
    pub ready: UnixStream,
    notify: UnixStream,
    machine: MachineArgs,
    answers: Receiver<(u32, InspectorAnswer)>,
    sender: Sender<(u32, InspectorAnswer)>,
}

const SIMULATED: &str = "a simulated process has no Inspector";

impl Inspectors {
    pub fn new(machine: &MachineArgs) -> io::Result<Inspectors> {
        let (ready, notify) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let (sender, answers) = channel();
        Ok(Inspectors { ready, notify, machine: machine.clone(), answers, sender })
    }

    /// Begins to ask. The answer takes two seconds at the most.
    pub fn ask(&self, pid: u32, started_at: Option<Timestamp>, state: &mut TopState) {
        let begun = match &self.machine {
            machine if machine.sim.is_some() => Err(SIMULATED.to_owned()),
            machine => self.begin(machine.clone(), pid, started_at).map_err(|error| error.to_string()),
        };
        let answer = begun.map_or_else(InspectorAnswer::Refused, |()| InspectorAnswer::Pending);
        state.inspection = Some(Inspection { pid, asked_at: state.latest.snapshot.taken_at, answer });
    }

    fn begin(&self, machine: MachineArgs, pid: u32, started_at: Option<Timestamp>) -> io::Result<()> {
        let (sender, mut notify) = (self.sender.clone(), self.notify.try_clone()?);
        let ask = move || {
            let list = still_there(&machine, pid, started_at)
                .and_then(|()| operations::of_process(&machine, pid, None).map_err(|error| format!("{error:#}")));
            let answer = list.map_or_else(InspectorAnswer::Refused, InspectorAnswer::Known);
            if sender.send((pid, answer)).is_ok() {
                // A pipe that is full says so already.
                let _ = notify.write(&[1]);
            }
        };
        std::thread::Builder::new().name("ttmon-inspect".into()).spawn(ask).map(drop)
    }

    /// Puts an answer into the state, unless another process was asked since.
    pub fn fill(&self, state: &mut TopState) {
        let mut ready = &self.ready;
        while matches!(ready.read(&mut [0; 64]), Ok(1..)) {}
        for (pid, answer) in self.answers.try_iter() {
            if let Some(inspection) = state.inspection.as_mut().filter(|inspection| inspection.pid == pid) {
                inspection.answer = answer;
            }
        }
    }
}

/// A process that has the same pid by now is not asked.
fn still_there(machine: &MachineArgs, pid: u32, started_at: Option<Timestamp>) -> Result<(), String> {
    // Below another root, processes are those of another machine.
    let Some(started_at) = started_at.filter(|_| machine.root.is_none()) else { return Ok(()) };
    let began = sources::started_at(pid).ok_or_else(|| format!("there is no process {pid}"))?;
    if started_at.0.abs_diff(began.0) > 1000 {
        return Err(format!("pid {pid} is a different process now"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TopSettings;
    use clap::Parser;
    use rustix::event::{PollFd, PollFlags, poll};

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        machine: MachineArgs,
    }

    fn inspectors(arguments: &[&str]) -> Inspectors {
        let line = CommandLine::parse_from([&["ttmon"], arguments].concat());
        Inspectors::new(&line.machine).unwrap()
    }

    fn answered(inspectors: &Inspectors, pid: u32, started_at: Option<Timestamp>) -> TopState {
        let mut state = TopState::new(TopSettings::default(), true);
        inspectors.ask(pid, started_at, &mut state);
        assert_eq!(state.inspection.as_ref().unwrap().answer, InspectorAnswer::Pending);
        let _ = poll(&mut [PollFd::new(&inspectors.ready, PollFlags::IN)], None);
        inspectors.fill(&mut state);
        state
    }

    fn refusal(state: TopState) -> String {
        match state.inspection.unwrap().answer {
            InspectorAnswer::Refused(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_without_tt_metal_says_so_and_another_with_its_pid_is_not_asked() {
        let inspectors = inspectors(&[]);
        let own = std::process::id();
        let began = sources::started_at(own);
        let why = refusal(answered(&inspectors, own, began));
        assert!(why.contains("has not loaded libtt_metal.so"), "{why}");
        let earlier = began.map(|began| Timestamp(began.0 - 60_000));
        assert_eq!(refusal(answered(&inspectors, own, earlier)), format!("pid {own} is a different process now"));
    }

    #[test]
    fn a_simulated_process_is_not_asked_and_a_late_answer_goes_to_no_other() {
        let mut state = TopState::new(TopSettings::default(), true);
        inspectors(&["--sim"]).ask(1, None, &mut state);
        assert_eq!(refusal(state), SIMULATED);
        let inspectors = inspectors(&[]);
        let mut state = answered(&inspectors, std::process::id(), None);
        let other = Inspection { pid: 1, asked_at: Timestamp(0), answer: InspectorAnswer::Pending };
        state.inspection = Some(other.clone());
        inspectors.sender.send((7, InspectorAnswer::Refused("late".into()))).unwrap();
        inspectors.fill(&mut state);
        assert_eq!(state.inspection, Some(other));
    }
}

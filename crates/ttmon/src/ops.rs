//! `ttmon ops PID`: which operations a process has launched.

use crate::json::json;
use crate::screen::{Color, Output, OutputScreen};
use clap::ValueEnum;
use model::{OperationList, OperationOrder, SCHEMA};
use serde::Serialize;
use show::operations::text as operations_text;
use show::terminal::on_terminal;
use watch::args::MachineArgs;
use watch::exit::{Exit, Failure};
use watch::operations;

pub const AFTER_HELP: &str = "\
Where ttmon's agent is in the process, its record is shown: every launch, with its time on the devices. Otherwise it \
asks tt-metal's Inspector inside the process, which is on by default (localhost:50051). To answer, it locks its tables: \
launches wait for some milliseconds, or some tens where tensors are recorded. So ttmon asks once, when you ask, and never by itself. The Inspector says what was launched, \
not how long it took. It remembers the last 8192 launches: when there were more, counts have the mark ≥.

Of several processes the first one gets the port; give the others one of their own with \
TT_METAL_INSPECTOR_RPC_SERVER_ADDRESS=localhost:PORT. Tensors are recorded with TT_METAL_INSPECTOR_CAPTURE_TENSOR_SPECS=1. \
Another user's process is asked as that user or as root.

Exit codes: 0 success; 2 invalid arguments; 4 permission denied; 6 no such process, or one that cannot be asked; 7 no answer within 2 s.";

#[derive(Debug, Clone, clap::Args)]
pub struct OpsArgs {
    /// The process
    #[arg(value_name = "PID")]
    pub pid: u32,
    /// Everything as JSON
    #[arg(long)]
    pub json: bool,
    /// What comes first: the most launched, or the last launched
    #[arg(long, value_name = "ORDER", default_value = "launches")]
    pub sort: Sort,
    /// Where its Inspector listens, for a program that sets the address itself: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    Launches,
    Last,
}

pub fn run(machine: &MachineArgs, args: &OpsArgs) -> anyhow::Result<Exit> {
    if machine.sim.is_some() {
        let why = "ops asks a process that runs now: --sim starts its own processes, which have no Inspector";
        return Err(Failure::error(Exit::Usage, why));
    }
    let mut list = operations::of_process(machine, args.pid, args.address.as_deref())?;
    list.sort(match args.sort {
        Sort::Launches => OperationOrder::Cost,
        Sort::Last => OperationOrder::Recent,
    });
    let mut screen = OutputScreen::new(Output {
        path: None,
        color: Color::Auto,
        ascii: false,
        in_place: false,
        choose: "PID",
        q_ends: false,
    });
    let text = if args.json { list_json(&list, !on_terminal()) } else { operations_text(&list, &screen.style()) };
    screen.show(&text)?;
    screen.close()?;
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    #[serde(flatten)]
    list: &'a OperationList,
}

fn list_json(list: &OperationList, one_line: bool) -> String {
    json(&Answer { schema: SCHEMA, list }, one_line)
}

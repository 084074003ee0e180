//! Which operations a process has launched, asked once.

use crate::args::MachineArgs;
use crate::exit::{Exit, Failure};
use model::OperationList;
use sources::{InspectorRefusal, Root, launched_operations, operations_in_book};

/// What the agent in a process has recorded, or else what its Inspector says.
pub fn of_process(args: &MachineArgs, pid: u32, address: Option<&str>) -> anyhow::Result<OperationList> {
    let recorded = if address.is_none() { operations_in_book(pid).ok().flatten() } else { None };
    recorded.map_or_else(|| from_inspector(args, pid, address), Ok)
}

/// Asks the Inspector of tt-metal in a process of this machine, at its own address or at the one that is given.
fn from_inspector(args: &MachineArgs, pid: u32, address: Option<&str>) -> anyhow::Result<OperationList> {
    if let Some(folder) = args.root.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::error(Exit::Usage, format!("--root {} is not a folder", folder.display())));
    }
    let root = args.root.as_deref().map_or_else(Root::machine, Root::under);
    launched_operations(&root, pid, address).map_err(|refusal| Failure::error(exit_of(&refusal), refusal.to_string()))
}

fn exit_of(refusal: &InspectorRefusal) -> Exit {
    match refusal {
        InspectorRefusal::NotPermitted { .. } => Exit::Permission,
        InspectorRefusal::Late { .. } | InspectorRefusal::NoAnswer { .. } => Exit::Unreachable,
        _ => Exit::NoDevice,
    }
}

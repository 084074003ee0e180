//! What stories call processes, devices and what they held.

use model::{Bytes, DeviceId, ExitRecord, Process, Usage};
use show::command;
use show::text::{clean, in_short};

/// `pid 7 (serve.py)`
pub fn process_name(process: &Process) -> String {
    named(process.pid, process.name.as_deref(), process.command.as_deref(), None)
}

/// `pid 7 (serve.py, user bob)`
pub fn process_of_user(process: &Process) -> String {
    named(process.pid, process.name.as_deref(), process.command.as_deref(), process.user.as_deref())
}

/// `pid 7 (serve.py, user bob)`
pub fn exit_name(exit: &ExitRecord) -> String {
    named(exit.pid, exit.name.as_deref(), exit.command.as_deref(), exit.user.as_deref())
}

fn named(pid: u32, name: Option<&str>, command: Option<&str>, user: Option<&str>) -> String {
    let name = command::name_of(name, command).map(|name| clean(&name).into_owned());
    let facts: Vec<String> = name.into_iter().chain(user.map(|user| format!("user {}", clean(user)))).collect();
    if facts.is_empty() { format!("pid {pid}") } else { format!("pid {pid} ({})", facts.join(", ")) }
}

/// `14.1 GiB DRAM, 60.0 MiB L1`. None where it is not known, or nothing.
pub fn held_text(usage: Usage) -> Option<String> {
    let part =
        |bytes: Option<Bytes>, kind: &str| bytes.filter(|bytes| bytes.0 > 0).map(|bytes| format!("{bytes} {kind}"));
    let parts: Vec<String> = [part(usage.dram_used, "DRAM"), part(usage.l1_used, "L1")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `device 1`, `devices 0-3`
pub fn devices_text<'a>(ids: impl IntoIterator<Item = &'a DeviceId>) -> String {
    let ids: Vec<&DeviceId> = ids.into_iter().collect();
    format!("{} {}", if ids.len() == 1 { "device" } else { "devices" }, in_short(&ids))
}

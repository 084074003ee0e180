//! `dmon` and `pmon`: a line per device or process, again and again, for eyes and for awk.

use super::args;
use super::process_fields::ProcessRow;
use model::{Bytes, BytesPerSecond, Device, Runtime, Snapshot};
use show::text::clean;

/// The header comes again after so many lines.
const SCREENFUL: usize = 24;

/// A running stream.
pub struct Stream {
    kind: Kind,
    with_date: bool,
    with_time: bool,
    lines: Option<usize>,
}

#[derive(Clone, Copy)]
enum Kind {
    Devices,
    Processes,
}

/// A column: name, unit, width.
type Column = (&'static str, &'static str, usize);

const DEVICE_COLUMNS: [Column; 10] = [
    ("dev", "Id", 5),
    ("pwr", "W", 6),
    ("temp", "C", 6),
    ("fan", "rpm", 6),
    ("aiclk", "MHz", 6),
    ("dram", "MiB", 8),
    ("l1", "KiB", 8),
    ("rxpci", "MB/s", 8),
    ("txpci", "MB/s", 8),
    ("state", "", 9),
];

const PROCESS_COLUMNS: [Column; 12] = [
    ("dev", "Id", 5),
    ("pid", "#", 8),
    ("user", "name", 9),
    ("via", "", 9),
    ("dram", "MiB", 8),
    ("l1", "KiB", 8),
    ("l1sml", "KiB", 8),
    ("trace", "KiB", 8),
    ("cb", "KiB", 8),
    ("cpu", "%", 6),
    ("util", "%", 6),
    ("command", "name", 0),
];

impl Stream {
    pub fn new(stream: &args::Stream) -> Stream {
        let (kind, args) = match stream {
            args::Stream::Dmon(args) => (Kind::Devices, args),
            args::Stream::Pmon(args) => (Kind::Processes, args),
        };
        let with = |letter| args.options.contains(letter);
        Stream { kind, with_date: with('D'), with_time: with('T'), lines: None }
    }

    /// The lines of one sample. `time` is the local date and time, a blank between them.
    pub fn text(&mut self, snapshot: &Snapshot, time: &str) -> String {
        let (columns, rows) = match self.kind {
            Kind::Devices => (&DEVICE_COLUMNS[..], snapshot.devices.iter().map(device).collect()),
            Kind::Processes => (&PROCESS_COLUMNS[..], processes(snapshot)),
        };
        let mut text = String::new();
        if self.lines.is_none_or(|lines| lines + rows.len() > SCREENFUL) {
            if snapshot.host.simulated {
                text += "# SIMULATED\n";
            }
            let names: Vec<String> = columns.iter().map(|(name, ..)| name.to_string()).collect();
            let units: Vec<String> = columns.iter().map(|(_, unit, _)| unit.to_string()).collect();
            text += &self.line('#', "Date Time", columns, &names);
            text += &self.line('#', "YYYYMMDD HH:MM:SS", columns, &units);
            self.lines = Some(0);
        }
        for row in &rows {
            text += &self.line(' ', time, columns, row);
        }
        self.lines = self.lines.map(|lines| lines + rows.len());
        text
    }

    fn line(&self, first: char, time: &str, columns: &[Column], cells: &[String]) -> String {
        let (date, time) = time.split_once(' ').unwrap_or((time, ""));
        let mut line = first.to_string();
        if self.with_date {
            line += &format!("{date:>9}");
        }
        if self.with_time {
            line += &format!("{time:>9}");
        }
        for ((.., width), cell) in columns.iter().zip(cells) {
            line += &if *width == 0 { format!("  {cell}") } else { format!(" {cell:>0$}", width - 1) };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

const ABSENT: &str = "-";

fn shown(value: Option<impl ToString>) -> String {
    value.map_or(ABSENT.into(), |value| value.to_string())
}

fn device(device: &Device) -> Vec<String> {
    if device.sample_age_seconds != Some(0.0) {
        // A line is of its moment: what was not read now is not in it.
        let mut cells = vec![ABSENT.to_owned(); DEVICE_COLUMNS.len()];
        cells[0] = device.id.to_string();
        cells[DEVICE_COLUMNS.len() - 1] = device.state.name().replace(' ', "-");
        return cells;
    }
    let megabytes = |rate: Option<BytesPerSecond>| shown(rate.map(|rate| format!("{:.0}", rate.0 / 1e6)));
    vec![
        device.id.to_string(),
        shown(device.power.map(|power| format!("{:.0}", power.0))),
        shown(device.asic_temp.map(|temp| format!("{:.0}", temp.0))),
        shown(device.fan.map(|fan| fan.0)),
        shown(device.aiclk.map(|clock| clock.0)),
        shown(device.memory.dram_used.map(|bytes| bytes.0 >> 20)),
        shown(device.memory.l1_used.map(|bytes| bytes.0 >> 10)),
        // Named from the device's side, as nvidia-smi does.
        megabytes(device.pcie.host_to_device),
        megabytes(device.pcie.device_to_host),
        device.state.name().replace(' ', "-"),
    ]
}

fn processes(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let mut rows: Vec<(model::DeviceId, Vec<String>)> = Vec::new();
    for row in ProcessRow::all(snapshot, "") {
        let kib = |bytes: Option<Bytes>| shown(bytes.map(|bytes| bytes.0 >> 10));
        let word = |text: Option<&str>| shown(text.map(|text| clean(text).replace(' ', "_")));
        let (process, usage) = (row.process, row.held.usage);
        let cells = vec![
            row.held.id.to_string(),
            process.pid.to_string(),
            word(process.user.as_deref()),
            word(process.runtime.map(Runtime::name)),
            shown(usage.dram.map(|bytes| bytes.0 >> 20)),
            kib(usage.l1),
            kib(usage.l1_small),
            kib(usage.trace),
            kib(usage.cb),
            shown(process.host_cpu_percent.map(|cpu| format!("{cpu:.0}"))),
            shown(row.held.utilization_percent.map(|percent| format!("{percent:.0}"))),
            word(process.name.as_deref()),
        ];
        rows.push((row.held.id.clone(), cells));
    }
    // A device without a process has a line that says so.
    for device in &snapshot.devices {
        if !rows.iter().any(|(id, _)| *id == device.id) {
            let mut cells = vec![ABSENT.to_owned(); PROCESS_COLUMNS.len()];
            cells[0] = device.id.to_string();
            rows.push((device.id.clone(), cells));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.into_iter().map(|(_, cells)| cells).collect()
}

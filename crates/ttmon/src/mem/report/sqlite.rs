//! The database of the ttnn visualizer: what was allocated on each device, operation by operation.
//!
//! Sizes are of one bank. The number of L1 banks is in it, that of DRAM banks is not, so DRAM stays a figure of one bank.

use super::{DatabaseReport, timeline};
use model::{Bytes, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};
use show::memory::view::{Area, Banks, Buffer, Chip, Kind};
use std::collections::BTreeMap;
use std::path::Path;
use watch::overlay::database::{columns, open, rank, words};

/// As tt-metal numbers its kinds; 2 is host memory.
pub const KINDS: [(i64, &str); 4] = [(0, "dram"), (1, "l1"), (3, "l1_small"), (4, "trace")];

/// Reads the last state of each device, and the peaks of all operations.
pub fn read(file: &Path) -> Result<DatabaseReport, String> {
    let connection = open(file).map_err(|error| error.to_string())?;
    for table in ["devices", "buffers"] {
        if columns(&connection, table).map_err(words)?.is_empty() {
            return Err(format!("it has no table {table:?}"));
        }
    }
    let in_buffers = |error| format!("table \"buffers\": {}", words(error));
    let devices = devices(&connection).map_err(|error| format!("table \"devices\": {}", words(error)))?;
    let sums = sums(&connection).map_err(in_buffers)?;
    let ranks = devices.iter().any(|device| device.rank != 0);
    let (mut parts, mut names) = (Vec::new(), BTreeMap::new());
    for device in &devices {
        let id = if ranks { format!("{}@{}", device.id, device.rank) } else { device.id.to_string() };
        names.insert((device.rank, device.id), id.clone());
        let last = sums.keys().filter(|key| key.rank == device.rank).map(|key| key.operation).max();
        let live = last.map_or(Ok(Vec::new()), |last| buffers(&connection, device, &id, last)).map_err(in_buffers)?;
        parts.push((chip(device, &id, last, &sums, &connection), live));
    }
    let timeline = timeline::read(&connection, &names).map_err(in_buffers)?;
    Ok(DatabaseReport { parts, taken_at: taken_at(&connection), timeline })
}

struct ReportDevice {
    rank: i64,
    id: i64,
    banks: Option<u32>,
    bank_bytes: Option<u64>,
    total: Option<u64>,
}

fn devices(connection: &Connection) -> rusqlite::Result<Vec<ReportDevice>> {
    let rank = rank(connection, "devices")?;
    let has_total = columns(connection, "devices")?.iter().any(|known| known == "total_l1_memory");
    let total = if has_total { "total_l1_memory" } else { "null" };
    let mut statement = connection.prepare(&format!(
        "select {rank}, device_id, l1_num_banks, l1_bank_size, {total} from devices order by 1, 2"
    ))?;
    let device = |row: &Row| {
        Ok(ReportDevice {
            rank: row.get(0)?,
            id: row.get(1)?,
            banks: positive(row, 2)?.and_then(|banks| banks.try_into().ok()),
            bank_bytes: positive(row, 3)?,
            total: positive(row, 4)?,
        })
    };
    statement.query_map([], device)?.collect()
}

fn positive(row: &Row, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(at)?.and_then(|number| number.try_into().ok()).filter(|number| *number > 0))
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BufferKey {
    rank: i64,
    device: i64,
    operation: i64,
    kind: i64,
}

/// Bytes of a bank and number of buffers.
type Sums = BTreeMap<BufferKey, (u64, u64)>;

fn sums(connection: &Connection) -> rusqlite::Result<Sums> {
    let rank = rank(connection, "buffers")?;
    let mut statement = connection.prepare(&format!(
        "select {rank}, device_id, operation_id, buffer_type, sum(max_size_per_bank), count(*) from buffers group by 1, 2, 3, 4"
    ))?;
    let sum = |row: &Row| {
        let key = BufferKey { rank: row.get(0)?, device: row.get(1)?, operation: row.get(2)?, kind: row.get(3)? };
        Ok((key, (positive(row, 4)?.unwrap_or(0), positive(row, 5)?.unwrap_or(0))))
    };
    statement.query_map([], sum)?.collect()
}

fn chip(device: &ReportDevice, id: &str, operation: Option<i64>, sums: &Sums, connection: &Connection) -> Chip {
    let of_device = || sums.iter().filter(|(key, _)| (key.rank, key.device) == (device.rank, device.id));
    let is_known = of_device().next().is_some();
    let kind = |number: i64| {
        let name = KINDS.iter().find(|(known, _)| *known == number)?.1;
        let peak = of_device().filter(|(key, _)| key.kind == number).map(|(_, (bytes, _))| *bytes).max();
        // A device of which the database never speaks is not known to be empty.
        if !is_known || (peak.is_none() && number > 1) {
            return None;
        }
        let now = of_device().find(|(key, _)| key.kind == number && Some(key.operation) == operation);
        let (now, buffers) = now.map_or((0, 0), |(_, sum)| *sum);
        let is_l1 = number == 1;
        let count = device.banks.filter(|_| is_l1 || number == 3);
        let in_all = |bytes: u64| Some(Bytes(bytes.saturating_mul(count?.into())));
        Some(Kind {
            kind: name.into(),
            used_bytes: in_all(now),
            peak_bytes: peak.and_then(in_all),
            buffers: Some(buffers),
            banks: Some(Banks {
                count,
                allocatable_bytes: device.bank_bytes.filter(|_| is_l1).map(Bytes),
                allocated_bytes: Some(Bytes(now)),
                allocators: 1,
                ..Banks::default()
            }),
            ..Kind::default()
        })
    };
    let dram: Vec<Kind> = [0, 4].into_iter().filter_map(kind).collect();
    let l1: Vec<Kind> = [1, 3].into_iter().filter_map(kind).collect();
    let name = operation.map(|operation| match name_of(connection, device.rank, operation) {
        Some(name) => format!("after operation {operation}, {name}"),
        None => format!("after operation {operation}"),
    });
    Chip {
        index: device.id.try_into().ok(),
        id: id.to_owned(),
        about: name,
        dram: Area::summed(None, dram),
        l1: Area::summed(device.total.map(Bytes), l1),
        ..Chip::default()
    }
}

fn name_of(connection: &Connection, of: i64, operation: i64) -> Option<String> {
    let by_rank = rank(connection, "operations").ok()?;
    let query = format!("select name from operations where operation_id = ?1 and {by_rank} = ?2");
    connection.query_row(&query, [operation, of], |row| row.get(0)).optional().ok().flatten()
}

fn buffers(connection: &Connection, device: &ReportDevice, id: &str, operation: i64) -> rusqlite::Result<Vec<Buffer>> {
    let rank = rank(connection, "buffers")?;
    let mut statement = connection.prepare(&format!(
        "select buffer_type, max_size_per_bank, address from buffers where {rank} = ?1 and device_id = ?2 and operation_id = ?3"
    ))?;
    let rows = statement.query_map([device.rank, device.id, operation], |row| {
        Ok((row.get::<_, i64>(0)?, positive(row, 1)?.unwrap_or(0), row.get::<_, i64>(2)?))
    })?;
    let mut buffers = Vec::new();
    for row in rows {
        let (number, bytes, address) = row?;
        let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == number) else { continue };
        let banks = device.banks.filter(|_| kind.starts_with("l1"));
        buffers.push(Buffer {
            devices: vec![id.to_owned()],
            kind: (*kind).into(),
            bytes: banks.map(|banks| Bytes(bytes.saturating_mul(banks.into()))),
            bank_bytes: Some(Bytes(bytes)),
            banks,
            address: address as u64,
            label: label(connection, device, number, address),
            ..Buffer::default()
        });
    }
    Ok(buffers)
}

/// The tensor at an address, if there was only one in all the time.
fn label(connection: &Connection, device: &ReportDevice, kind: i64, address: i64) -> Option<String> {
    let rank = rank(connection, "tensors").ok()?;
    let mut statement = connection
        .prepare_cached(&format!(
            "select tensor_id, shape, dtype from tensors where {rank} = ?1 and device_id = ?2 and buffer_type = ?3 and address = ?4 limit 2"
        ))
        .ok()?;
    let label = |row: &Row| {
        let (id, shape, dtype): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let shape = shape.trim_start_matches("Shape(").trim_end_matches(')').to_owned();
        Ok(format!("tensor {id} {shape} {}", dtype.trim_start_matches("DataType.").to_lowercase()))
    };
    let found: Vec<String> =
        statement.query_map([device.rank, device.id, kind, address], label).ok()?.flatten().collect();
    if let [one] = &found[..] { Some(one.clone()) } else { None }
}

fn taken_at(connection: &Connection) -> Option<Timestamp> {
    let query = "select value from report_metadata where key = 'capture_timestamp_ns'";
    let value: String = connection.query_row(query, [], |row| row.get(0)).ok()?;
    Some(Timestamp(value.parse::<i64>().ok()? / 1_000_000))
}

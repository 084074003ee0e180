//! `db.sqlite` of the ttnn visualizer: the operations of a capture in their order, each with its duration on the host.
//!
//! The database says when the capture began and how long it took, not when each operation began. So one follows the other, and each can be
//! late by the time that passed between operations.

use super::shortened;
use crate::fleet::http::escaped;
use rusqlite::{Connection, OpenFlags, Row};
use std::path::Path;

/// More operations are left out.
const MOST_OPERATIONS: usize = 1_000_000;

/// The operations of a capture, on a time axis.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CapturedOperations {
    /// When the capture began, in nanoseconds since 1970.
    pub began_ns: Option<u64>,
    /// How much later than said here an operation may have begun. None where that is not known.
    pub error_ns: Option<u64>,
    /// In their order.
    pub operations: Vec<CapturedOperation>,
    /// Whether processes of several ranks are in it.
    pub has_ranks: bool,
}

/// One operation. Times are in nanoseconds since the capture began, if one operation followed the other at once.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct CapturedOperation {
    /// Rank of the process.
    pub rank: i64,
    /// Number of the operation.
    pub id: i64,
    /// Name of the operation.
    pub name: String,
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// Reads all operations.
pub fn operations(connection: &Connection) -> Result<CapturedOperations, String> {
    if columns(connection, "operations").map_err(words)?.is_empty() {
        return Err("it has no table \"operations\"".into());
    }
    let in_table = |error| format!("table \"operations\": {}", words(error));
    let rank = rank(connection, "operations").map_err(in_table)?;
    let query =
        format!("select {rank}, operation_id, name, duration from operations order by 1, 2 limit {MOST_OPERATIONS}");
    let mut statement = connection.prepare(&query).map_err(in_table)?;
    let row = |row: &Row| {
        let name: Option<String> = row.get(2)?;
        let seconds: Option<f64> = row.get(3)?;
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, name.unwrap_or_default(), seconds.unwrap_or(0.0)))
    };
    let mut captured = CapturedOperations::default();
    let mut at: Option<(i64, u64)> = None;
    for row in statement.query_map([], row).map_err(in_table)? {
        let (rank, id, mut name, seconds) = row.map_err(in_table)?;
        name.truncate(shortened(&name).len());
        captured.has_ranks |= at.is_some_and(|(last, _)| last != rank);
        let start_ns = at.filter(|(last, _)| *last == rank).map_or(0, |(_, end)| end);
        // A cast of what is no number, or negative, is zero.
        let end_ns = start_ns.saturating_add((seconds * 1e9) as u64);
        at = Some((rank, end_ns));
        captured.operations.push(CapturedOperation { rank, id, name, start_ns, end_ns });
    }
    captured.began_ns = metadata(connection, "capture_timestamp_ns");
    let last = at.map_or(0, |(_, end)| end);
    let total = metadata(connection, "total_duration_ns").filter(|_| !captured.has_ranks);
    captured.error_ns = total.and_then(|total| total.checked_sub(last));
    Ok(captured)
}

fn metadata(connection: &Connection, key: &str) -> Option<u64> {
    let query = "select value from report_metadata where key = ?1";
    let value: String = connection.query_row(query, [key], |row| row.get(0)).ok()?;
    value.parse().ok()
}

/// Opens a database. Neither the file nor anything beside it is written to.
pub fn open(file: &Path) -> rusqlite::Result<Connection> {
    let parts: Vec<String> = file.to_string_lossy().split('/').map(escaped).collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("file:{}?immutable=1", parts.join("/")), flags)
}

/// What is wrong, in words.
pub fn words(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        other => other.to_string(),
    }
}

/// The columns of a table; none where there is no such table.
pub fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// The column of ranks, or zero in its place: older databases have none.
pub fn rank(connection: &Connection, table: &str) -> rusqlite::Result<&'static str> {
    Ok(if columns(connection, table)?.iter().any(|known| known == "rank") { "rank" } else { "0" })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const DATABASE: &str = "
        create table operations (operation_id int, name text, duration float, rank int not null default 0);
        insert into operations values (1, 'MatmulDeviceOperation', 0.007, 0), (2, 'SoftmaxDeviceOperation', 0.001, 0);
        create table report_metadata (key text unique, value text);
        insert into report_metadata values ('capture_timestamp_ns', '1767323045678000000'), ('total_duration_ns', '8500000');
    ";

    fn of(statements: &str) -> Result<CapturedOperations, String> {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(statements).unwrap();
        operations(&connection)
    }

    #[test]
    fn operations_follow_each_other_and_what_is_between_them_is_the_error() {
        let captured = of(DATABASE).unwrap();
        assert_eq!((captured.began_ns, captured.error_ns), (Some(1_767_323_045_678_000_000), Some(500_000)));
        let times: Vec<_> = captured.operations.iter().map(|one| (one.id, one.start_ns, one.end_ns)).collect();
        assert_eq!(times, [(1, 0, 7_000_000), (2, 7_000_000, 8_000_000)]);
    }

    #[test]
    fn a_database_of_an_earlier_version_has_durations_alone() {
        let old = "create table operations (operation_id int unique, name text, duration float);
                   insert into operations values (2, 'b', 0.5), (1, 'a', null);";
        let captured = of(old).unwrap();
        assert_eq!((captured.began_ns, captured.error_ns, captured.has_ranks), (None, None, false));
        assert_eq!(captured.operations[1].end_ns, 500_000_000);
        assert_eq!(of("create table x (y int)"), Err("it has no table \"operations\"".into()));
    }

    #[test]
    fn ranks_ran_at_the_same_time() {
        let captured = of(&format!("{DATABASE} insert into operations values (1, 'x', 0.002, 1);")).unwrap();
        assert_eq!((captured.has_ranks, captured.error_ns), (true, None));
        assert_eq!(captured.operations[2].start_ns, 0);
        // What took longer than the whole capture cannot be placed in it.
        assert_eq!(of(&DATABASE.replace("8500000", "8")).unwrap().error_ns, None);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_file_is_read_or_refused(damage in proptest::collection::vec((0usize..8192, 0u8..), 1..40), duration: f64) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("db.sqlite");
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch(DATABASE).unwrap();
            connection.execute("update operations set duration = ?1", [duration]).unwrap();
            drop(connection);
            if let Ok(captured) = open(&path).map_err(words).and_then(|connection| operations(&connection)) {
                assert!(captured.operations.iter().all(|one| one.start_ns <= one.end_ns));
            }
            let mut bytes = std::fs::read(&path).unwrap();
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            std::fs::write(&path, bytes).unwrap();
            let _ = open(&path).map_err(words).and_then(|connection| operations(&connection));
        }
    }
}

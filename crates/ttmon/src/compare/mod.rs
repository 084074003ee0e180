//! `ttmon compare`, and `ttmon run --compare`: two runs or two stretches of time side by side, and what changed.

mod gather;
mod receipts;
mod row;
mod significance;
#[cfg(test)]
mod steady;
mod stretches;

use crate::json::json;
use anyhow::Context;
use gather::Gathered;
use jiff::tz::TimeZone;
use model::{SCHEMA, Timestamp};
pub use receipts::Totals;
use row::Row;
use serde::Serialize;
use serde_json::Value;
use show::terminal::on_terminal;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::duration;
use watch::exit::{Exit, Failure};
use watch::past::{BlackBoxArgs, NamedStretch, Stretch, now, when};
use watch::record::Recording;

pub const AFTER_HELP: &str = "\
A and B are each the receipt of a run (`ttmon run --json FILE`), a recording (`ttmon record -o FILE`), a part of it \
(FILE@FROM..TO), or a part of the black box (@FROM..TO).

Two stretches are compared figure by figure, for each device, for all devices together and for each operation: the mean, or for \
memory the peak. A * marks what differs by more than the noise within each, and by 1 % or more. Each stretch is cut into 16 blocks, and \
the values of blocks are compared by Welch's test, which takes into account that samples that follow each other are alike, and how many \
figures there are. A receipt has totals and no noise: there, a change is 5 % or more.

  ttmon compare before.json after.json
  ttmon compare night.ttmon@02:00..02:30 night.ttmon@03:00..03:30
  ttmon compare \"@yesterday 14:00..15:00\" \"@14:00..15:00\"

Exit codes: 0 both were compared, whatever changed; 2 invalid arguments, or a file that cannot be compared; 6 there is no black box.";

#[derive(Debug, Clone, clap::Args)]
pub struct CompareArgs {
    /// The earlier run: a receipt, a recording, FILE@FROM..TO, or @FROM..TO of the black box
    #[arg(value_name = "A")]
    pub a: String,
    /// The later run, named in the same way
    #[arg(value_name = "B")]
    pub b: String,
    /// Everything as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub black_box: BlackBoxArgs,
}

/// What one side is.
enum Side {
    Receipt(Totals),
    Recorded(Box<Recorded>),
}

struct Recorded {
    from: Timestamp,
    to: Timestamp,
    gathered: Gathered,
}

#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    a: About<'a>,
    b: About<'a>,
    /// `blocks` where noise is known, `totals` where it is not.
    method: &'static str,
    figures: Vec<Row>,
    /// Figures that only one side has.
    not_in_both: usize,
}

/// One side, in JSON.
#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    samples: Option<usize>,
}

pub fn run(machine: &MachineArgs, args: &CompareArgs) -> anyhow::Result<Exit> {
    let sides = [&args.a, &args.b].map(|name| Side::open(name, &args.black_box, machine));
    let [a, b] = sides;
    let (a, b) = (a?, b?);
    let answer = |method, figures, not_in_both| Answer {
        schema: SCHEMA,
        a: a.about(&args.a),
        b: b.about(&args.b),
        method,
        figures,
        not_in_both,
    };
    let text = if let (Side::Recorded(a), Side::Recorded(b)) = (&a, &b) {
        let rows = stretches::rows(&a.gathered, &b.gathered);
        let not_in_both = stretches::in_one_only(&a.gathered, &b.gathered);
        match args.json {
            true => json(&answer("blocks", rows, not_in_both), !on_terminal()),
            false => head("A", &args.a, a) + &head("B", &args.b, b) + &stretches::text(&rows, not_in_both),
        }
    } else {
        let (old, new) = (a.totals(), b.totals());
        let (rows, not_in_both) = (receipts::rows(&old, &new), receipts::in_one_only(&old, &new));
        match args.json {
            true => {
                let figures = rows.into_iter().map(|(row, _)| row).collect();
                json(&answer("totals", figures, not_in_both), !on_terminal())
            }
            false => receipts::text(&rows, not_in_both),
        }
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Success)
}

/// What an earlier run had, for `run --compare`: read before anything else is done.
pub fn before_a_run(machine: &MachineArgs, name: &str) -> anyhow::Result<Totals> {
    let side = Side::open(name, &BlackBoxArgs::default(), machine);
    let of_option = |error: anyhow::Error| match error.downcast::<Failure>() {
        Ok(failure) => Failure::error(failure.exit(), format!("--compare: {failure}")),
        Err(other) => other.context("--compare"),
    };
    side.map(|side| side.totals()).map_err(of_option)
}

/// What changed since then.
pub fn after_a_run(before: &Totals, receipt: &Value) -> String {
    let after = receipts::totals(receipt);
    receipts::text(&receipts::rows(before, &after), receipts::in_one_only(before, &after))
}

impl Side {
    /// Reads what a name names. A file that is no recording is taken for a receipt.
    fn open(name: &str, black_box: &BlackBoxArgs, machine: &MachineArgs) -> anyhow::Result<Side> {
        let wrong = |what: String| Failure::error(Exit::Usage, format!("{name}: {what}"));
        let named = NamedStretch::parse(name, now(), &TimeZone::system()).map_err(wrong)?;
        match &named.path {
            Some(path) if named.range.is_none() && !Recording::is_one(path) => {
                receipts::open(path).map(|receipt| Side::Receipt(receipts::totals(&receipt)))
            }
            _ => {
                let stretch = named.open(black_box, machine)?;
                if let Some(remark) = stretch.recording.remark() {
                    let _ = writeln!(io::stderr(), "{name}: {remark}");
                }
                Recorded::of(stretch)
                    .with_context(|| name.to_owned())
                    .map(|recorded| Side::Recorded(Box::new(recorded)))
            }
        }
    }

    fn totals(&self) -> Totals {
        match self {
            Side::Receipt(totals) => totals.clone(),
            Side::Recorded(recorded) => receipts::totals_of_stretch(&recorded.gathered),
        }
    }

    fn about<'a>(&self, name: &'a str) -> About<'a> {
        match self {
            Side::Receipt(_) => About { name, from: None, to: None, samples: None },
            Side::Recorded(recorded) => About {
                name,
                from: Some(recorded.from),
                to: Some(recorded.to),
                samples: Some(recorded.gathered.samples),
            },
        }
    }
}

impl Recorded {
    fn of(mut stretch: Stretch) -> io::Result<Recorded> {
        let gathered = Gathered::of(&mut stretch)?;
        Ok(Recorded { from: stretch.from, to: stretch.to, gathered })
    }
}

/// One side in one line: when, and how many samples.
fn head(side: &str, name: &str, recorded: &Recorded) -> String {
    let Recorded { from, gathered, .. } = recorded;
    let samples = gathered.samples;
    let begin = when::text(*from, now(), &TimeZone::system());
    let length = duration::text(Duration::from_secs_f64(gathered.seconds.max(0.0)));
    let name = Path::new(name).file_name().map_or_else(|| name.into(), |name| name.to_string_lossy());
    format!("{side}  {name}: {length} from {begin}, {samples} samples\n")
}

//! The command line of `ttmon run`.

use std::ffi::OsString;
use std::path::PathBuf;

pub const AFTER_HELP: &str = "\
The receipt goes to standard error when CMD has ended: peak and final bytes per chip and kind, buffers that are still \
allocated, and of each device the energy, the highest power and the highest temperature. Children that outlive CMD are not \
waited for.

The agent, libttmon_agent.so, is preloaded into CMD and all that it starts. It is looked for beside ttmon, in ../lib/ttmon and \
../lib; TTMON_AGENT_LIB names another one, and TTMON_AGENT=off does without.

Exit codes: that of CMD, 128+N when signal N killed it, 127 when it was not found, 126 when it may not be executed; 3 leaks \
(--leaks); 2 a wrong word on the command line, or no agent.";

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Exit with 3 when CMD succeeds, but one of its processes leaves something allocated at its clean end, or when it
    /// closes a device
    #[arg(long)]
    pub leaks: bool,
    /// Write the receipt as JSON to FILE, too; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Look at power and temperature every MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub interval_ms: u64,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

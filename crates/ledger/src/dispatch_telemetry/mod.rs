//! What tt-metal's dispatch kernels count in the L1 memory of their cores, and the utilization that follows from it.
//!
//! Pure: [`block`] decodes the bytes, [`formula`] computes. Whoever reads a device passes its own function for that.

pub mod block;
pub mod formula;

/// Why there is no utilization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// Also what a read answers when the chip is hung or gone.
    #[error("the chip answers all-ones: nothing is read from it any more")]
    AllOnes,
    /// Before the device is open, in releases without dispatch telemetry, or at another address.
    #[error("no dispatch telemetry at its address")]
    NoSignature,
    /// A layout that is not known.
    #[error("dispatch telemetry of version {0}, which is not known")]
    Version(u32),
    /// The host dispatches the work, so no dispatch core counts it.
    #[error("slow dispatch: no core counts the work")]
    SlowDispatch,
    /// The control block names no dispatch core, or more queues than there can be.
    #[error("the control block of dispatch telemetry is not plausible")]
    Control,
    /// The counters changed during every attempt to read them.
    #[error("the counters of dispatch telemetry changed during every read")]
    Torn,
    /// No dispatch kernel runs: closed, hung, slow dispatch, or a dispatch without its subordinate.
    #[error("the timestamp of dispatch telemetry stands still: dispatch is not running")]
    Still,
    /// The kernel was started again, or the block belongs to another process.
    #[error("the counters of dispatch telemetry went backwards")]
    Backwards,
    /// More ticks than a chip can have in that time.
    #[error("the timestamp of dispatch telemetry jumped")]
    Jumped,
    /// See [`formula::SHORTEST_NS`].
    #[error("the window is too short")]
    Short,
}

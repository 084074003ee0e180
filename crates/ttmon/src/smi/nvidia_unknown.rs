//! Fields of nvidia-smi that do not apply here: a query answers `[N/A]` for each, so that the others are still answered.

/// Names with their unit. A name that ends in a dot stands for all that begin with it.
#[rustfmt::skip]
const FIELDS: &[(&str, &str)] = &[
    ("pstate", ""), ("compute_cap", ""), ("compute_mode", ""), ("persistence_mode", ""), ("addressing_mode", ""),
    ("display_active", ""), ("display_attached", ""), ("display_mode", ""), ("accounting.", ""), ("driver_model.", ""),
    ("inforom.", ""), ("gom.", ""), ("mig.", ""), ("vgpu_", ""), ("fabric.", ""), ("platform.", ""), ("gsp.", ""), ("c2c.", ""), ("dramEncryption.", ""),
    ("protected_memory.", "MiB"), ("remapped_rows.", ""), ("retired_pages.", ""), ("ecc.", ""), ("encoder.", ""), ("gpu_recovery_action", ""),
    ("clocks_throttle_reasons.", ""), ("clocks_event_reasons.", ""), ("clocks_event_reasons_counters.", "us"),
    ("clocks.mem", "MHz"), ("clocks.current.memory", "MHz"), ("clocks.video", "MHz"), ("clocks.current.video", "MHz"), ("clocks.max.", "MHz"), ("clocks.applications.", "MHz"), ("clocks.default_applications.", "MHz"),
    ("power.management", ""), ("power.default_limit", "W"), ("power.min_limit", "W"), ("power.draw.average", "W"), ("module.power.", "W"), ("gpu_power.", "W"),
    ("temperature.memory", ""), ("temperature.gpu.tlimit", ""), ("memory.reserved", "MiB"),
    ("utilization.encoder", "%"), ("utilization.decoder", "%"), ("utilization.jpeg", "%"), ("utilization.ofa", "%"),
    ("pci.device_id", ""), ("pci.sub_device_id", ""), ("pci.baseclass", ""), ("pci.subclass", ""), ("pcie.link.gen.gpucurrent", ""), ("pcie.link.gen.gpumax", ""), ("pcie.link.gen.hostmax", ""),
    ("gpu_operation_mode.", ""), ("hostname", ""), ("mps.", ""), ("time_to_", ""),
];

/// Sections of its `-q -d` about what the chips do not have, or the driver does not publish.
pub const SECTIONS: [&str; 13] = [
    "ECC",
    "PERFORMANCE",
    "SUPPORTED_CLOCKS",
    "ACCOUNTING",
    "COMPUTE",
    "PAGE_RETIREMENT",
    "ENCODER_STATS",
    "FBC_STATS",
    "ROW_REMAPPER",
    "RESET_STATUS",
    "GSP_FIRMWARE_VERSION",
    "POWER_SMOOTHING",
    "POWER_PROFILES",
];

/// The unit of a field that is nvidia-smi's and that nothing here measures.
pub fn unit(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let is = |known: &str| {
        if known.ends_with(['.', '_']) { lower.starts_with(&known.to_ascii_lowercase()) } else { lower == known }
    };
    FIELDS.iter().find(|(known, _)| is(known)).map(|(_, unit)| *unit)
}

/// The names, for the help.
pub fn names() -> String {
    let shown = |name: &str| if name.ends_with(['.', '_']) { format!("{name}*") } else { name.to_owned() };
    FIELDS.iter().map(|(name, _)| shown(name)).collect::<Vec<_>>().join(", ")
}

//! The unpacked wheels. Without them a test cannot run, which must not go unnoticed.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

/// The wheel of today.
pub fn wheel(test: &str) -> Option<PathBuf> {
    named_by("TTMON_TTNN", "scripts/fetch-ttnn", test)
}

/// The wheel of today and the old one.
pub fn wheels(test: &str) -> impl Iterator<Item = PathBuf> {
    let old = named_by("TTMON_TTNN_OLD", "scripts/fetch-ttnn 0.78.0", test);
    wheel(test).into_iter().chain(old)
}

fn named_by(variable: &str, command: &str, test: &str) -> Option<PathBuf> {
    if let Some(ttnn) = env::var_os(variable) {
        return Some(ttnn.into());
    }
    let notice = format!("NOT RUN: {test}, because {variable} is not set: {variable}=$({command})");
    assert!(env::var_os("CI").is_none(), "{notice}");
    // The test runner swallows what `eprintln!` writes in a test that passes.
    io::stderr().write_all(format!("\n{notice}\n\n").as_bytes()).unwrap();
    None
}

//! Has the linker put what `ttmon smi` runs side by side: each page that is touched brings its neighbours into memory.

use std::env::var;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=smi.ld");
    let is = |name: &str, value: &str| var(name).is_ok_and(|it| it == value);
    // Other linkers than the usual ones may not know such scripts.
    let has_own_linker = var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("fuse-ld"));
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !has_own_linker
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}/smi.ld", env!("CARGO_MANIFEST_DIR"));
        link_unwinder();
    }
}

/// Takes the unwinder into the program, where the compiler has it: a library less to load at every start.
fn link_unwinder() {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Ok(path) = asked.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned()) else { return };
    if let Some(folder) = Path::new(&path).parent().filter(|_| Path::new(&path).is_absolute()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

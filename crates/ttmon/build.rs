//! Has the linker put what `ttmon smi` runs side by side: each page that is touched brings its neighbours into memory.

use std::env::var;

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
    }
}

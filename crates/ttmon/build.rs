//! Prepares the release build of the command:
//!
//! - The agent is built, compressed and put inside, so that one file is enough for `ttmon run`. A debug build finds the agent beside itself.
//! - The linker puts what `ttmon smi` and a service call side by side: each page that is touched brings its neighbours into memory.
//! - What `ttmon --version --verbose` says about the build.

use std::env::var;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    for path in ["build.rs", "functions.ld"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let is_release = is("PROFILE", "release");
    if is_release {
        order_functions();
        link_unwinder();
    }
    let out = PathBuf::from(needed("OUT_DIR"));
    let agent = if is_release { Some(agent(&out)) } else { None };
    std::fs::write(out.join("agent.z"), agent.map(|agent| compressed(&agent)).unwrap_or_default())
        .expect("cannot write to OUT_DIR");
    describe(is_release);
}

fn is(name: &str, value: &str) -> bool {
    var(name).is_ok_and(|it| it == value)
}

fn needed(name: &str) -> String {
    var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn order_functions() {
    // Other linkers than the usual ones may not know such scripts.
    let has_own_linker = var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("fuse-ld"));
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "gnu") && !has_own_linker {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}/functions.ld", needed("CARGO_MANIFEST_DIR"));
    }
}

/// Takes the unwinder into the program, where the compiler has it: a library less to load at every start.
fn link_unwinder() {
    // The one of another linker's C library may be older than this compiler's unwinder needs.
    if var("RUSTC_LINKER").is_ok() {
        return;
    }
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Ok(path) = asked.map(|answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned()) else { return };
    if let Some(folder) = Path::new(&path).parent().filter(|_| Path::new(&path).is_absolute()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The agent's library: the file that `TTMON_BUILT_AGENT` names, or one that a cargo of its own builds.
fn agent(out: &Path) -> Vec<u8> {
    println!("cargo::rerun-if-env-changed=TTMON_BUILT_AGENT");
    let file = match var("TTMON_BUILT_AGENT") {
        Ok(file) if !file.is_empty() => {
            println!("cargo::rerun-if-changed={file}");
            PathBuf::from(file)
        }
        _ => build_agent(out),
    };
    std::fs::read(&file).unwrap_or_else(|error| panic!("cannot read the agent {}: {error}", file.display()))
}

fn build_agent(out: &Path) -> PathBuf {
    let crates = PathBuf::from(needed("CARGO_MANIFEST_DIR")).join("..");
    // What the agent is made of.
    for part in ["agent", "ledger", "model", "sources"] {
        for file in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", crates.join(part).join(file).display());
        }
    }
    for file in ["agent/build.rs", "../Cargo.toml", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", crates.join(file).display());
    }
    let (target, folder) = (needed("TARGET"), out.join("agent"));
    let mut cargo = Command::new(needed("CARGO"));
    cargo
        .args(["build", "--release", "--locked", "--quiet", "--package", "ttmon-agent", "--target", &target])
        // In a folder of its own: the outer cargo has locked the usual one.
        .arg("--target-dir")
        .arg(&folder)
        // There are the settings of the workspace.
        .current_dir(crates.join(".."))
        // It would be clippy's.
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    // Those of this package are not the agent's.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_CFG_")) {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot run cargo for the agent: {error}"));
    assert!(status.success(), "cargo cannot build the agent, which is part of ttmon: {status}");
    folder.join(target).join("release/libttmon_agent.so")
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    // By the mark, scripts/build-wheel finds it. src/built_in_agent.rs knows its length.
    let mark = b"ttmon agent, deflated:\n".to_vec();
    let mut packer = flate2::write::DeflateEncoder::new(mark, flate2::Compression::best());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes all")
}

/// Facts that the program cannot find out by itself.
fn describe(is_release: bool) {
    let rustc = Command::new(needed("RUSTC")).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let rustc = String::from_utf8_lossy(&rustc).trim().to_owned();
    // A debug build would be made again after every commit.
    let commit = if is_release { commit() } else { None };
    println!("cargo::rustc-env=TTMON_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=TTMON_RUSTC={rustc}");
    println!("cargo::rustc-env=TTMON_TARGET={}", needed("TARGET"));
    println!("cargo::rustc-env=TTMON_PROFILE={}", needed("PROFILE"));
}

/// The commit of the source, with `-dirty` if files were changed since.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // Each commit adds a line to it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    // Not one of a folder around: a source without git may lie in another project.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

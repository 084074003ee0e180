//! Keeps the library mapped once it is loaded, since tt-metal may call it until the process ends, and compiles the small object in
//! which C++ exceptions end.

use std::process::Command;

const FOLDER: &str = "src/dispatch_telemetry";

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["guard.cpp", "cxx_runtime.c"] {
        println!("cargo:rerun-if-changed={FOLDER}/{file}");
    }
    let mut guard = cc::Build::new();
    // Without the runtime: see cxx_runtime.c.
    guard.cpp(true).cpp_link_stdlib(None).file(format!("{FOLDER}/guard.cpp")).flag("-fexceptions");
    let mut runtime = cc::Build::new();
    runtime.file(format!("{FOLDER}/cxx_runtime.c"));
    for build in [&mut guard, &mut runtime] {
        build.flag("-fvisibility=hidden").warnings_into_errors(true);
    }
    // The one that needs the other comes first.
    guard.compile("ttmon_guard");
    runtime.compile("ttmon_cxx_runtime");
    println!("cargo:rustc-env=TTMON_CXX={}", name(&guard.get_compiler()));
}

/// The first line of what the compiler says about itself.
fn name(compiler: &cc::Tool) -> String {
    let output =
        Command::new(compiler.path()).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    text.lines().next().map_or_else(|| compiler.path().display().to_string(), str::to_owned)
}

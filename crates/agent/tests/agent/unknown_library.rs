//! A library of tt-metal's name that has nothing of what the agent knows but the function that it intercepts.

use crate::harness::{Pages, books, built, compile};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const LIBRARY: &str = "
    static int passed;
    void _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE(void *tracker, void *buffer) {
        passed += tracker == (void *)1 && buffer == (void *)2;
    }
    int go(void) {
        _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE((void *)1, (void *)2);
        _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE((void *)1, (void *)2);
        return passed;
    }
";

const PROGRAM: &str = "
    #include <dlfcn.h>
    #include <stdio.h>
    int main(int count, char **arguments) {
        if (count > 2 && !dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL)) return 1;
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return 2;
        printf(\"%d\\n\", ((int (*)(void))dlsym(library, \"go\"))());
        fflush(stdout);
        getchar();
        return 0;
    }
";

struct Running(Child);

impl Running {
    /// Loads the agent by the environment or by itself, and answers how many calls arrived.
    fn start(folder: &Path, library: &str, name: Option<&str>, preload: bool) -> (Running, String) {
        let (library, program) = (folder.join(library), folder.join("program"));
        fs::write(folder.join("library.c"), LIBRARY).unwrap();
        fs::write(folder.join("program.c"), PROGRAM).unwrap();
        let name = name.map(|name| format!("-Wl,-soname,{name}"));
        let how: Vec<&str> = ["-shared", "-fPIC"].into_iter().chain(name.as_deref()).collect();
        compile(&folder.join("library.c"), &library, &how);
        compile(&folder.join("program.c"), &program, &[]);
        let agent = built("libttmon_agent.so");
        let mut command = Command::new(program);
        command.arg(library).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env_remove("TTMON_AGENT").env_remove("TTMON_BOOK_SOCKET");
        if preload {
            command.env("LD_PRELOAD", agent);
        } else {
            command.arg(agent);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Running(child), line.trim().to_owned())
    }

    fn book(&self) -> Pages {
        let mut books = books(self.0.id());
        assert_eq!(books.len(), 1);
        books.remove(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn calls_are_passed_on_and_the_book_says_what_is_missing() {
    for (library, name, preload) in [
        ("libtt_metal.so", Some("libtt_metal.so"), true),
        ("libtt_metal.so", Some("libtt_metal.so"), false),
        // By what is in it alone.
        ("libother.so", None, true),
        ("libother.so", None, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (running, passed) = Running::start(folder.path(), library, name, preload);
        assert_eq!(passed, "2", "{library} {preload}");
        let book = running.book().read();
        assert!(book.is_inexact);
        assert_eq!(
            book.producer,
            concat!("ttmon-agent ", env!("CARGO_PKG_VERSION"), ", libtt_metal that is not recognised")
        );
        let remark = "libtt_metal.so lacks functions that describe a buffer; nothing is counted";
        let path = folder.path().join(library);
        let path = name.map_or(String::new(), |_| format!(" ({})", path.display()));
        assert_eq!(book.remark, Some(format!("{remark}{path}")));
        assert_eq!(book.chips, []);
    }
}

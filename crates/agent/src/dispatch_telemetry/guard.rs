//! Calls functions of C++ that may throw. The exception ends in `guard.cpp`.

use crate::library;
use std::ffi::c_void;

/// The C++ runtime of this process is known, so that exceptions can be caught.
#[derive(Debug, Clone, Copy)]
pub struct Guard(());

impl Guard {
    /// Looks for the runtime that tt-metal uses.
    pub fn find() -> Option<Guard> {
        // It stays in the library as long as it is used.
        std::hint::black_box(BUILT);
        let personality = library::find(c"__gxx_personality_v0")?;
        let begin_catch = library::find(c"__cxa_begin_catch")?;
        let end_catch = library::find(c"__cxa_end_catch")?;
        // SAFETY: these are the functions of those names.
        unsafe { ttmon_cxx_runtime(personality.as_ptr(), begin_catch.as_ptr(), end_catch.as_ptr()) };
        Some(Guard(()))
    }

    /// Calls a function, which only calls one of C++. `None` when that threw an exception.
    pub fn call<T>(self, function: impl Fn() -> T) -> Option<T> {
        let mut call = Call { function, result: None };
        // SAFETY: `run` gets what it expects, and `call` outlives the call.
        let ended = unsafe { ttmon_guard(run_of(&call), (&raw mut call).cast()) };
        call.result.filter(|_| ended)
    }
}

struct Call<F, T> {
    function: F,
    result: Option<T>,
}

fn run_of<T, F: Fn() -> T>(_: &Call<F, T>) -> unsafe extern "C-unwind" fn(*mut c_void) {
    unsafe extern "C-unwind" fn run<T, F: Fn() -> T>(call: *mut c_void) {
        // SAFETY: `Guard::call` passes one of these.
        let call = unsafe { &mut *call.cast::<Call<F, T>>() };
        call.result = Some((call.function)());
    }
    run::<T, F>
}

unsafe extern "C-unwind" {
    fn ttmon_guard(call: unsafe extern "C-unwind" fn(*mut c_void), with: *mut c_void) -> bool;
}

unsafe extern "C" {
    fn ttmon_cxx_runtime(personality: *mut c_void, begin_catch: *mut c_void, end_catch: *mut c_void);
}

/// Names the compiler of `guard.cpp` in the library: `strings libttmon_agent.so | grep 'C++ object'`.
static BUILT: &str =
    concat!("\0ttmon-agent ", env!("CARGO_PKG_VERSION"), ", C++ object compiled by ", env!("TTMON_CXX"), "\0");

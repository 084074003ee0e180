//! The end by `_exit`: workers of Python's `multiprocessing` end that way, and run no destructors.
//!
//! An `_exit` with 0 is an end as any other, so the book is closed. With another code, and after a signal, it stays open.

use crate::book::ProcessBook;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `_exit`, in front of the C library's.
#[unsafe(export_name = "_exit")]
unsafe extern "C" fn exit_at_once(code: c_int) -> ! {
    ended(code)
}

/// `_Exit`, the same by the name that the C standard has for it.
#[unsafe(export_name = "_Exit")]
unsafe extern "C" fn standard_exit_at_once(code: c_int) -> ! {
    ended(code)
}

/// This may be a signal handler, or a child of `vfork`: nothing is allocated, locked or looked up here.
fn ended(code: c_int) -> ! {
    if code == 0 {
        if let Some(book) = ProcessBook::current() {
            book.close_at_once();
        }
    }
    let real = REAL.load(Relaxed);
    if !real.is_null() {
        // SAFETY: this is the function of that name, which returns to nobody.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(real)(code) };
    }
    loop {
        // SAFETY: this is what the C library does.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// The `_exit` after ours, looked up while that is still safe.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn find() {
        const NAME: &CStr = c"_exit";
        // SAFETY: the name ends with a zero.
        REAL.store(unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr()) }, Relaxed);
    }
    find
};

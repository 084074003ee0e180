//! How a function of `libtt_metal.so` is intercepted.

use std::ffi::CStr;

/// Intercepts a function: does something before, passes the call on, does something after.
macro_rules! in_front_of {
    ($(#[$what:meta])* $name:literal, fn $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?,
     $before:expr, $after:expr) => {
        $(#[$what])*
        #[unsafe(export_name = $name)]
        // Side by side: a call finds few pages and lines of them in the caches that the workload has filled.
        #[unsafe(link_section = ".text.hot")]
        unsafe extern "C-unwind" fn $function($($argument: $type),*) $(-> $result)? {
            static REAL: Real = Real::new(zero_terminated(concat!($name, "\0")));
            let on = is_on();
            let between = if on { $before } else { Default::default() };
            let result = match REAL.get() {
                Some(real) => {
                    // SAFETY: this is the function of that name, with the arguments that it was called with.
                    unsafe {
                        let real = std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>(
                            real.as_ptr(),
                        );
                        real($($argument),*)
                    }
                }
                // It cannot have been called.
                None => Default::default(),
            };
            if on {
                #[allow(clippy::redundant_closure_call)]
                $after(between, &result);
            }
            result
        }
    };
}

pub(crate) use in_front_of;

/// For a function after which there is nothing to do.
pub fn nothing<B, R>(_between: B, _result: &R) {}

/// The name of a function, as the loader takes it.
pub const fn zero_terminated(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name with a zero in it"),
    }
}

//! The few pieces of the C++ ABI (Itanium, libstdc++, x86-64) that the library's functions need.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering, fence};

use anyhow::{Context, Result};
use libloading::os::unix::{Library, RTLD_NOW};

/// A library that stays loaded until the process ends, so that its functions may be copied out.
#[derive(Clone, Copy)]
pub struct Cpp(&'static Library);

impl Cpp {
    /// Loads a library whose names the libraries loaded later see (`RTLD_GLOBAL`) or do not see (`RTLD_LOCAL`).
    pub fn load(path: &Path, visibility: c_int) -> Result<Cpp> {
        // SAFETY: The initialisers run code of a library that the caller chose; tt-metal's only set
        // up its own globals.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | visibility) };
        let library = library.with_context(|| format!("cannot load {}", path.display()))?;
        Ok(Cpp(Box::leak(Box::new(library))))
    }

    /// Finds a function by its mangled name, or by the next one where a library has another.
    ///
    /// # Safety
    /// `F` must be the function pointer type that matches the names.
    pub unsafe fn function<F: Copy>(self, names: &[&str]) -> Result<F> {
        // SAFETY: The caller vouches for the type.
        let found = names.iter().find_map(|name| unsafe { self.0.get::<F>(name.as_bytes()) }.ok());
        Ok(*found.with_context(|| format!("the library has no {}", names.join(" and no ")))?)
    }
}

/// A table of functions: arguments, result, and mangled names, which the types follow from.
macro_rules! cpp_functions {
    ($(#[$about:meta])* $table:ident {
        $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $($symbol:expr),+;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $table {
            $($(#[$doc])* pub $name: unsafe extern "C-unwind" fn($($argument: $type),*) $(-> $result)?,)+
        }

        impl $table {
            pub fn find(library: $crate::cpp::Cpp) -> anyhow::Result<$table> {
                // SAFETY: The types follow from the mangled names; `this` comes first.
                unsafe { Ok($table { $($name: library.function(&[$($symbol),+])?,)+ }) }
            }
        }
    };
}
pub(crate) use cpp_functions;

/// Zeroed memory for a C++ object whose type we do not know, larger and stricter than it needs.
#[repr(C, align(64))]
pub struct Storage([u8; Storage::SIZE]);

impl Storage {
    const SIZE: usize = 16 << 10;

    /// Memory at an address that stays the same.
    pub fn new() -> Box<Storage> {
        Box::new(Storage([0; Storage::SIZE]))
    }

    pub fn as_ptr(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }
}

/// A `std::shared_ptr`, returned by C++ through a pointer to memory of ours.
#[repr(C)]
pub struct SharedPtr {
    object: *mut c_void,
    control: *mut ControlBlock,
}

// SAFETY: The counts are atomic, and tt-metal's objects may be used from any thread.
unsafe impl Send for SharedPtr {}

/// `std::_Sp_counted_base`.
#[repr(C)]
struct ControlBlock {
    vtable: *const Vtable,
    owners: AtomicI32,
    watchers: AtomicI32,
}

#[repr(C)]
struct Vtable {
    destructors: [*const c_void; 2],
    dispose: unsafe extern "C-unwind" fn(*mut ControlBlock),
    destroy: unsafe extern "C-unwind" fn(*mut ControlBlock),
}

impl SharedPtr {
    pub fn null() -> SharedPtr {
        SharedPtr { object: ptr::null_mut(), control: ptr::null_mut() }
    }

    pub fn object(&self) -> *mut c_void {
        self.object
    }
}

impl Drop for SharedPtr {
    fn drop(&mut self) {
        let control = self.control;
        if control.is_null() {
            return;
        }
        // SAFETY: We own one count, so the block is alive. As in libstdc++, the last owner disposes
        // of the object, and all owners together hold one count of the watchers.
        unsafe {
            if (*control).owners.fetch_sub(1, Ordering::Release) == 1 {
                fence(Ordering::Acquire);
                let vtable = (*control).vtable;
                ((*vtable).dispose)(control);
                if (*control).watchers.fetch_sub(1, Ordering::Release) == 1 {
                    fence(Ordering::Acquire);
                    ((*vtable).destroy)(control);
                }
            }
        }
    }
}

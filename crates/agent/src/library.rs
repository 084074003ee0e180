//! Finds the real functions of `libtt_metal.so`: by name, in the library that is loaded, never among our own.
//!
//! `RTLD_NEXT` would not do: Python loads the library with `RTLD_LOCAL`.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

/// A function of the real library, found when it is first needed.
pub struct Real {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Real {
        Real { name, at: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    pub fn get(&self) -> Option<NonNull<c_void>> {
        NonNull::new(self.at.load(Acquire)).or_else(|| self.find())
    }

    #[cold]
    fn find(&self) -> Option<NonNull<c_void>> {
        let found = find(self.name)?;
        // Threads that race find the same.
        self.at.store(found.as_ptr(), Release);
        Some(found)
    }
}

/// Finds a function or an object by its mangled name.
#[cold]
pub fn find(name: &CStr) -> Option<NonNull<c_void>> {
    let handles = [loaded(), Some(libc::RTLD_NEXT)];
    handles.into_iter().flatten().find_map(|handle| lookup(handle, name))
}

fn lookup(handle: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the handle is a module's or the special one, and the name ends with a zero.
    let found = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })?;
    (!is_ours(found)).then_some(found)
}

/// Whether the library is there.
pub fn is_loaded() -> bool {
    loaded().is_some()
}

/// The path of a library of that name that is loaded, whether it has what is known of it or not.
pub fn path() -> Option<String> {
    modules().into_iter().filter_map(|module| module.into_string().ok()).find(|module| {
        module.rsplit('/').next().is_some_and(|name| name == "libtt_metal.so" || name.starts_with("libtt_metal.so."))
    })
}

/// The machine code of a function, up to `limit` bytes, as far as its symbol says.
pub fn code(function: NonNull<c_void>, limit: usize) -> &'static [u8] {
    let mut symbol: *const libc::Elf64_Sym = ptr::null();
    let mut info = no_info();
    // SAFETY: both are there to be written to. The loader only compares the address with those of its modules.
    let found = unsafe { dladdr1(function.as_ptr(), &mut info, (&raw mut symbol).cast(), RTLD_DL_SYMENT) };
    if found == 0 || symbol.is_null() || info.dli_saddr != function.as_ptr() {
        return &[];
    }
    // SAFETY: the symbol belongs to a module that is loaded.
    let size = unsafe { (*symbol).st_size } as usize;
    // SAFETY: the function has so many bytes of code, which is mapped readable and never changes; the library is never
    // unloaded, as we keep a handle to it.
    unsafe { std::slice::from_raw_parts(function.as_ptr().cast(), size.min(limit)) }
}

/// Reads eight bytes at an address that may be anything, without touching it.
pub fn peek(address: usize) -> Option<usize> {
    let mut value = 0usize;
    let local = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: size_of::<usize>() };
    let remote = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: size_of::<usize>() };
    // SAFETY: the kernel writes into `value`, and answers an error for an address that cannot be read.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if read == size_of::<usize>() as isize { Some(value) } else { peek_by_file(address) }
}

/// The fallback where a container does not allow the first way.
fn peek_by_file(address: usize) -> Option<usize> {
    let mut bytes = [0; size_of::<usize>()];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, address as u64).ok()?;
    Some(usize::from_ne_bytes(bytes))
}

/// A handle to the library, kept for good: what was found in it stays mapped.
fn loaded() -> Option<*mut c_void> {
    static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let known = HANDLE.load(Acquire);
    if !known.is_null() {
        return Some(known);
    }
    // By its name, as everybody ships it, or whichever module has what it is known for.
    let handle = open(c"libtt_metal.so").or_else(|| modules().iter().find_map(|module| open(module)))?;
    HANDLE.store(handle, Release);
    Some(handle)
}

const KNOWN_FOR: &CStr = c"_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE";

/// A handle to a module that is loaded, if it is the library or needs it.
fn open(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: with this flag nothing is loaded, and so no code is run.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() || lookup(handle, KNOWN_FOR).is_some() {
        return (!handle.is_null()).then_some(handle);
    }
    // SAFETY: it was ours, and whoever loaded the module has another one.
    unsafe { libc::dlclose(handle) };
    None
}

/// The paths of all modules that are loaded.
fn modules() -> Vec<CString> {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, modules: *mut c_void) -> c_int {
        // SAFETY: the loader hands over what it knows of a module. A name, if there is one, ends with a zero. `modules` is
        // what waits for us outside.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*modules.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut modules = Vec::new();
    // SAFETY: the callback has the right form, and `modules` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut modules).cast()) };
    modules
}

fn is_ours(address: NonNull<c_void>) -> bool {
    let base = |address: *const c_void| {
        let mut info = no_info();
        // SAFETY: as in `code`.
        let found = unsafe { libc::dladdr(address, &mut info) };
        (found != 0).then_some(info.dli_fbase)
    };
    let ours = base(is_ours as *const c_void);
    ours.is_none() || base(address.as_ptr()) == ours
}

fn no_info() -> libc::Dl_info {
    libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    }
}

const RTLD_DL_SYMENT: c_int = 1;

unsafe extern "C" {
    /// As `dladdr`, with the symbol itself.
    fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: c_int) -> c_int;
}

/// Finds a function by its mangled name.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
pub unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = find(name)?.as_ptr();
    // SAFETY: as promised, and the size is right.
    Some(unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_another_module_is_found() {
        assert!(find(c"dlopen").is_some());
        assert!(find(c"_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE").is_none());
        assert!(!is_loaded());
        assert!(modules().len() > 2);
    }

    #[test]
    fn we_never_find_ourselves() {
        let ours = NonNull::new(find as fn(&CStr) -> _ as *mut c_void).unwrap();
        assert!(is_ours(ours));
        assert!(!is_ours(find(c"dlopen").unwrap()));
    }

    #[test]
    fn the_code_of_a_function_ends_where_it_ends() {
        let function = find(c"getppid").unwrap();
        assert!((1..=64).contains(&code(function, 64).len()));
        assert_eq!(code(function, 4).len(), 4);
        let inside = NonNull::new(function.as_ptr().wrapping_byte_add(1)).unwrap();
        assert!(code(inside, 64).is_empty(), "this is not where a function begins");
    }

    #[test]
    fn an_address_that_is_nothing_is_not_read() {
        let value = 42usize;
        assert_eq!(peek((&raw const value).addr()), Some(42));
        assert_eq!(peek_by_file((&raw const value).addr()), Some(42));
        for nothing in [0, 4096, usize::MAX - 7] {
            assert_eq!((peek(nothing), peek_by_file(nothing)), (None, None));
        }
    }
}

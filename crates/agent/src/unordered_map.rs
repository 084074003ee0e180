//! A container of the C++ library.

use std::ffi::c_void;

/// libstdc++'s `std::unordered_map`, whose layout is part of its ABI.
#[repr(C)]
pub struct UnorderedMap {
    buckets: *const c_void,
    bucket_count: usize,
    pub first: *const c_void,
    pub count: usize,
}

#[cfg(test)]
impl UnorderedMap {
    pub fn of_nodes(first: *const c_void, count: usize) -> UnorderedMap {
        UnorderedMap { buckets: std::ptr::null(), bucket_count: 0, first, count }
    }
}

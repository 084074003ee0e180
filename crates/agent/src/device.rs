//! Which chips a device of tt-metal consists of: one for a `Device`, several for a `MeshDevice`.

use crate::library::{self, function};
use crate::unordered_map::UnorderedMap;
use ledger::book::CHIPS;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A `tt::tt_metal::IDevice`.
pub type Object = NonNull<c_void>;

/// The functions that describe a device.
pub struct DeviceFunctions {
    /// What the first word of such an object points to.
    mesh: usize,
    device: usize,
    mesh_ids: unsafe extern "C-unwind" fn(*mut IntVector, Object) -> *mut IntVector,
    /// The place of `id()` among the virtual functions of both.
    id: usize,
    /// C++'s `operator delete`.
    delete: unsafe extern "C-unwind" fn(*mut c_void),
    unique_ids: Option<UniqueIds>,
}

/// The chips that a device consists of.
#[derive(Debug, Clone, Copy)]
pub struct Members {
    chips: [Member; CHIPS],
    count: usize,
}

/// A chip as the runtime knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member {
    pub device_id: u32,
    pub unique_id: Option<u64>,
}

impl Members {
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.chips.iter().take(self.count)
    }
}

impl DeviceFunctions {
    /// Finds the functions, or says what is missing.
    pub fn find() -> Result<DeviceFunctions, &'static str> {
        let mesh = vtable(c"_ZTVN2tt8tt_metal11distributed10MeshDeviceE").ok_or(MISSING)?;
        let device = vtable(c"_ZTVN2tt8tt_metal6DeviceE").ok_or(MISSING)?;
        let mesh_id = library::find(c"_ZNK2tt8tt_metal11distributed10MeshDevice2idEv").ok_or(MISSING)?;
        // Both override the same functions of `IDevice`, their first base, and so have them in the same places.
        let is_id = |place: &usize| entry(mesh, *place) == mesh_id.addr().get();
        let mut places = (0..FIRST_FUNCTIONS).filter(is_id);
        let (Some(id), None) = (places.next(), places.next()) else { return Err(MISSING) };
        // SAFETY: the types follow from the names; a `std::vector` comes back through a pointer that goes first.
        unsafe {
            Ok(DeviceFunctions {
                mesh,
                device,
                mesh_ids: function(c"_ZNK2tt8tt_metal11distributed10MeshDevice14get_device_idsEv").ok_or(MISSING)?,
                id,
                delete: function(c"_ZdlPv").ok_or(MISSING)?,
                unique_ids: UniqueIds::find(),
            })
        }
    }

    /// Looks up the chips of a device. With `care`, the pointer may be anything.
    ///
    /// # Safety
    /// If it is a device, it must be open.
    pub unsafe fn members(&self, device: Object, care: bool) -> Result<Members, &'static str> {
        let address = device.addr().get();
        let class = if !care {
            // SAFETY: an object with virtual functions begins with a pointer.
            unsafe { device.cast::<usize>().read() }
        } else if address % align_of::<usize>() == 0 {
            library::peek(address).ok_or(ODD)?
        } else {
            return Err(ODD);
        };
        // SAFETY: its class is known from here on, and it is open.
        unsafe {
            if class == self.mesh {
                self.of_mesh(device)
            } else if class == self.device {
                Ok(self.of_device(device))
            } else {
                Err(ODD)
            }
        }
    }

    unsafe fn of_mesh(&self, mesh: Object) -> Result<Members, &'static str> {
        let mut ids = IntVector { begin: std::ptr::null_mut(), end: std::ptr::null_mut(), room: std::ptr::null_mut() };
        // SAFETY: it is a mesh device, and the vector is there to be written to.
        let listed = unsafe {
            (self.mesh_ids)(&mut ids, mesh);
            if ids.begin.is_null() {
                return Err("a mesh device has no chips");
            }
            let count = usize::try_from(ids.end.offset_from(ids.begin)).unwrap_or(0);
            let listed = if count <= CHIPS {
                let mut members = Members { chips: [Member::default(); CHIPS], count };
                for (i, chip) in members.chips.iter_mut().take(count).enumerate() {
                    chip.device_id = *ids.begin.add(i) as u32;
                }
                Ok(members)
            } else {
                Err("a mesh device has more chips than the book has room for")
            };
            (self.delete)(ids.begin.cast());
            listed
        };
        let mut members = listed?;
        // SAFETY: the device is open.
        unsafe { self.identify(mesh, &mut members) };
        Ok(members)
    }

    unsafe fn of_device(&self, device: Object) -> Members {
        // SAFETY: `id()` is in this place, takes the object alone and answers an `int`.
        let id = unsafe {
            let id =
                std::mem::transmute::<usize, unsafe extern "C-unwind" fn(Object) -> i32>(entry(self.device, self.id));
            id(device)
        };
        let mut members = Members { chips: [Member::default(); CHIPS], count: 1 };
        members.chips[0].device_id = id as u32;
        // SAFETY: the device is open.
        unsafe { self.identify(device, &mut members) };
        members
    }

    unsafe fn identify(&self, device: Object, members: &mut Members) {
        let Some(unique_ids) = &self.unique_ids else { return };
        for member in members.chips.iter_mut().take(members.count) {
            // SAFETY: as the caller promises.
            member.unique_id = unsafe { unique_ids.of(device, member.device_id) };
        }
    }
}

/// The way to the unique ids of chips that tt-metal itself goes at every allocation, up to its cluster, and from there on
/// to the descriptor of the cluster.
struct UniqueIds {
    way: Option<DescriptorWay>,
    unique_ids: unsafe extern "C-unwind" fn(*const c_void) -> *const UnorderedMap,
}

/// From a device to the descriptor of its cluster.
struct DescriptorWay {
    context_id: unsafe extern "C-unwind" fn(Object) -> i32,
    context: unsafe extern "C-unwind" fn(i32) -> *mut c_void,
    cluster: unsafe extern "C-unwind" fn(*mut c_void) -> *const c_void,
    descriptor: unsafe extern "C-unwind" fn(*const c_void) -> *const c_void,
}

/// The descriptor of the cluster that was opened last. Early releases keep the way to it inline, and have one cluster at a time.
static DESCRIPTOR: AtomicUsize = AtomicUsize::new(0);

/// A cluster has answered with its descriptor, which lives as long as the cluster.
pub fn described(descriptor: usize) {
    if DESCRIPTOR.load(Relaxed) != descriptor {
        DESCRIPTOR.store(descriptor, Relaxed);
    }
}

impl UniqueIds {
    unsafe fn find() -> Option<UniqueIds> {
        // SAFETY: the types follow from the names; references are pointers.
        unsafe {
            Some(UniqueIds {
                way: DescriptorWay::find(),
                unique_ids: function(c"_ZNK2tt3umd17ClusterDescriptor19get_chip_unique_idsEv")?,
            })
        }
    }

    /// # Safety
    /// The device must be open.
    unsafe fn of(&self, device: Object, device_id: u32) -> Option<u64> {
        /// A node of an `unordered_map<int, uint64_t>`.
        #[repr(C)]
        struct Node {
            next: *const Node,
            device_id: i32,
            unique_id: u64,
        }
        // SAFETY: an open device has a context, a cluster and a descriptor. The map's nodes form a list that ends with null.
        unsafe {
            let descriptor = match &self.way {
                Some(way) => (way.descriptor)((way.cluster)((way.context)((way.context_id)(device)))),
                None => std::ptr::with_exposed_provenance(DESCRIPTOR.load(Relaxed)),
            };
            if descriptor.is_null() {
                return None;
            }
            let map = (self.unique_ids)(descriptor).as_ref()?;
            let mut node = map.first.cast::<Node>();
            for _ in 0..map.count.min(4096) {
                let this = node.as_ref()?;
                if this.device_id as u32 == device_id {
                    return Some(this.unique_id);
                }
                node = this.next;
            }
            None
        }
    }
}

impl DescriptorWay {
    unsafe fn find() -> Option<DescriptorWay> {
        // SAFETY: the types follow from the names; references are pointers.
        unsafe {
            Some(DescriptorWay {
                context_id: function(c"_ZN2tt8tt_metal18extract_context_idEPKNS0_7IDeviceE")?,
                context: function(c"_ZN2tt8tt_metal12MetalContext8instanceEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE")?,
                cluster: function(c"_ZN2tt8tt_metal12MetalContext11get_clusterEv")?,
                descriptor: function(c"_ZNK2tt7Cluster16get_cluster_descEv")?,
            })
        }
    }
}

/// `std::vector<int>`.
#[repr(C)]
struct IntVector {
    begin: *mut i32,
    end: *mut i32,
    room: *mut i32,
}

/// Where the virtual functions begin, after the offset and the type.
fn vtable(name: &CStr) -> Option<usize> {
    Some(library::find(name)?.addr().get() + 2 * size_of::<usize>())
}

/// Both classes have far more functions than this.
const FIRST_FUNCTIONS: usize = 16;

fn entry(vtable: usize, place: usize) -> usize {
    let at: *const usize = std::ptr::with_exposed_provenance(vtable);
    // SAFETY: the table belongs to a library that stays loaded, and has this place.
    unsafe { at.add(place.min(FIRST_FUNCTIONS)).read() }
}

const MISSING: &str = "libtt_metal.so lacks functions that describe a device; nothing is counted";
const ODD: &str = "a device is of a class that is not known; its buffers are not counted";

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Node {
        next: *const Node,
        device_id: i32,
        unique_id: u64,
    }

    /// The descriptor is its own map.
    unsafe extern "C-unwind" fn itself(descriptor: *const c_void) -> *const UnorderedMap {
        descriptor.cast()
    }

    #[test]
    fn where_the_way_to_it_is_inline_the_descriptor_that_the_cluster_returned_names_the_chips() {
        let second = Node { next: std::ptr::null(), device_id: 1, unique_id: 77 };
        let first = Node { next: &second, device_id: 0, unique_id: 66 };
        let map = UnorderedMap::of_nodes((&raw const first).cast(), 2);
        let ids = UniqueIds { way: None, unique_ids: itself };
        // SAFETY: nothing is done with the device.
        let of = |device_id| unsafe { ids.of(NonNull::dangling(), device_id) };
        assert_eq!(of(0), None, "no cluster was opened");
        described((&raw const map).expose_provenance());
        assert_eq!([of(0), of(1), of(2)], [Some(66), Some(77), None]);
        described(0);
    }
}

//! The machine itself: name and kernel from `uname`, the driver's version from `/sys/module/tenstorrent/version`.

use crate::devices;
use crate::dir::Root;
use model::Host;

pub(crate) fn host(root: &Root) -> Host {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| Some(text.to_string_lossy().into_owned());
    Host {
        name: text(uname.nodename()),
        kernel: text(uname.release()),
        driver_version: devices::driver_version(root),
        simulated: false,
    }
}

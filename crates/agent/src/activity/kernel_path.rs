//! The name of an operation from the path of one of its kernels: `…/operations/<family>/<operation>/device/kernels/reader.cpp`.

/// The folder of the operation, or the name of the file where there is none.
pub fn operation(path: &[u8]) -> Option<&[u8]> {
    let folders = path.windows(OPERATIONS.len()).rposition(|window| window == OPERATIONS);
    let inside = folders.and_then(|at| path.get(at + OPERATIONS.len()..)).and_then(|rest| {
        let end = rest.windows(DEVICE.len()).position(|window| window == DEVICE)?;
        rest.get(..end)?.rsplit(|byte| *byte == b'/').next()
    });
    let file = || {
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        name.strip_suffix(b".cpp")
    };
    inside.or_else(file).filter(|name| !name.is_empty() && name.iter().all(u8::is_ascii_graphic))
}

const OPERATIONS: &[u8] = b"/operations/";
const DEVICE: &[u8] = b"/device/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_names_the_operation() {
        let of = |path: &str| operation(path.as_bytes()).map(|name| String::from_utf8(name.to_vec()).unwrap());
        let path = "ttnn/cpp/ttnn/operations/eltwise/binary/device/kernels/dataflow/reader.cpp";
        assert_eq!(of(path).as_deref(), Some("binary"));
        assert_eq!(of("/opt/ttnn/operations/matmul/device/kernels/compute/bmm.cpp").as_deref(), Some("matmul"));
        assert_eq!(of("tests/kernels/blank.cpp").as_deref(), Some("blank"));
        assert_eq!(of("void kernel_main() { }"), None, "a kernel that is given as text");
        assert_eq!(of("/operations//device/x.cpp"), None);
        assert_eq!(of(""), None);
    }
}

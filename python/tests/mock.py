"""A mock device for the real ttnn: an n150 without the hardware."""

import os
import pathlib
import re

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "crates/harness/clusters/n150.yaml"

#: Makes an empty kernel of any, with Debian's binutils-riscv64-unknown-elf.
KERNELS = pathlib.Path(__file__).resolve().parents[2] / "scripts/stand-in-gxx"


def environment(ttnn: pathlib.Path, root: pathlib.Path) -> "dict[str, str]":
    """Lays a root folder for tt-metal around an unpacked wheel, as crates/harness/src/root.rs does; what names it."""
    _link_all(ttnn, root, "runtime")
    _link_all(ttnn / "runtime", root / "runtime", "sfpi")
    firmware = next((ttnn / "tt_metal/pre-compiled").glob("*/brisc/brisc.elf")).read_bytes()
    name = re.search(rb"\(tenstorrent/sfpi[^)]*\) [0-9.]+", firmware).group().decode()
    # Its version is part of the key of the firmware that comes with the wheel.
    compiler = root / "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
    compiler.parent.mkdir(parents=True)
    version = f"[ \"$1\" = --version ] && echo 'riscv-tt-elf-g++ {name}' && exit"
    compiler.write_text(f"#!/bin/sh\n{version}\nexec '{KERNELS}' \"$@\"\n")
    compiler.chmod(0o755)
    for tool in ("nm", "objcopy", "objdump", "readelf"):
        os.symlink(f"/usr/bin/riscv64-unknown-elf-{tool}", compiler.parent / f"riscv-tt-elf-{tool}")
    (root / "scratch").mkdir()
    return {
        "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(CLUSTER),
        "TT_METAL_RUNTIME_ROOT": str(root),
        "TT_METAL_HOME": str(root),
        "TT_METAL_CACHE": str(root / "scratch"),
        "TT_METAL_SHM_TRACKING_DISABLED": "1",
        "TT_LOGGER_LEVEL": "error",
        "LOGURU_LEVEL": "ERROR",
    }


def _link_all(folder: pathlib.Path, to: pathlib.Path, besides: str) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name != besides:
            os.symlink(entry, to / entry.name)

"""Exact device memory of ttnn programs, to the byte.

    import ttmon, ttnn

    device = ttnn.open_device(device_id=0)
    with ttmon.label("kv-cache"):
        cache = ttnn.zeros([1, 8, 1024, 64], layout=ttnn.TILE_LAYOUT, device=device)

    ttmon.memory()["chips"][0]["dram"]["bytes"]                  # what the allocator has reserved
    [b["bytes"] for b in ttmon.memory()["buffers"] if b["label"] == "kv-cache"]

Nothing has to be called for `ttmon smi` to show the program: installing the package is enough.
"""

from __future__ import annotations

import contextlib
from typing import Any

import _ttmon_hook  # noqa: F401  Where the package was not installed, its .pth has not done this.

from . import _agent
from ._agent import Error

__all__ = ["Error", "detailed", "label", "memory", "ops", "process", "system"]
__version__ = "0.1.0"


def memory() -> dict[str, Any]:
    """The device memory of this process: its bytes per chip and kind, and every live buffer.

    >>> ttmon.memory()["chips"][0]["dram"]["peak_bytes"]
    540672
    """
    return _agent.ask("ttmon_memory")


def process(pid: int) -> dict[str, Any]:
    """The same of another process, if we may look into it.

    >>> ttmon.process(4711)["buffers"][0]["label"]
    'kv-cache'
    """
    return _agent.ask("ttmon_process", pid)


def system(device: int | None = None) -> dict[str, Any]:
    """One device, or all of them, and the processes on it, as `ttmon smi --json` shows them.

    >>> [d["asic_temp_celsius"] for d in ttmon.system()["devices"]]
    [51.2, 49.8]
    """
    return _agent.ask("ttmon_system", -1 if device is None else device)


def detailed(device: int | None = None) -> dict[str, Any]:
    """The same, and in each process its `book` with every live buffer, where it keeps one that we may read.

    >>> [b["label"] for p in ttmon.detailed(0)["processes"] if p["book"] for b in p["book"]["buffers"]]
    ['kv-cache', None]
    """
    return _agent.ask("ttmon_detailed", -1 if device is None else device)


def ops(pid: int | None = None) -> dict[str, Any]:
    """The operations that this process has launched, or another one: how often, and their time on the devices.

    >>> [(op["name"], op["launches"], op["device_seconds"]) for op in ttmon.ops()["operations"]]
    [('MatmulDeviceOperation', 1604, 0.7025)]
    """
    return _agent.ask("ttmon_ops", 0 if pid is None else pid)


class label(contextlib.ContextDecorator):
    """Labels the buffers that this thread allocates, in a `with` block or in a function. The innermost label counts.

    >>> with ttmon.label("kv-cache"):
    ...     cache = ttnn.zeros(shape, device=device)

    >>> @ttmon.label("attention")
    ... def attention(x): ...
    """

    def __init__(self, text: str) -> None:
        self._text = text.encode(errors="replace")

    def __enter__(self) -> label:
        _agent.label("ttmon_label_push", self._text)
        return self

    def __exit__(self, *exception: object) -> None:
        _agent.label("ttmon_label_pop")

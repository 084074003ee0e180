"""The agent, libttmon_agent.so: loaded once, and asked by its C functions (ttmon.h)."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from typing import Any


class Error(Exception):
    """Why there is no answer, in one sentence."""


def activate() -> None:
    """Loads the agent, so that it hears of all buffers, unless TTMON_AGENT switches it off."""
    if not _is_off():
        _library()


def ask(query: str, *arguments: int) -> dict[str, Any]:
    """Calls a function that answers JSON."""
    if any(not -(2**31) <= number < 2**31 for number in arguments):
        raise Error(f"there is no such number: {arguments[0]}")
    try:
        library = _library()
        text = getattr(library, query)(*arguments)
    except (AttributeError, OSError) as error:
        raise Error(f"the agent cannot be used: {error}") from None
    try:
        answer = json.loads(ctypes.string_at(text))
    finally:
        library.ttmon_text_free(text)
    if "error" in answer:
        raise Error(answer["error"])
    return answer


def label(function: str, *text: bytes) -> None:
    """Calls ttmon_label_push or ttmon_label_pop: labels the buffers of this thread, or goes back to the label before."""
    try:
        getattr(_library(), function)(*text)
    except (AttributeError, OSError):
        pass  # Then buffers are not counted.


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    # `ttmon run` has brought it already. A second copy would count a second time.
    library = ctypes.CDLL(None)
    if not hasattr(library, "ttmon_open"):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libttmon_agent.so")
        # Global, it comes before libtt_metal.so; switched off, it only answers queries.
        library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL if _is_off() else ctypes.RTLD_GLOBAL)
    for name, arguments in _QUERIES.items():
        if hasattr(library, name):
            getattr(library, name).argtypes = arguments
            getattr(library, name).restype = ctypes.c_void_p
    library.ttmon_label_push.argtypes = [ctypes.c_char_p]
    library.ttmon_label_push.restype = library.ttmon_label_pop.restype = None
    library.ttmon_text_free.argtypes = [ctypes.c_void_p]
    library.ttmon_text_free.restype = None
    return library


_QUERIES = {
    "ttmon_memory": [],
    "ttmon_process": [ctypes.c_int32],
    "ttmon_system": [ctypes.c_int32],
    "ttmon_detailed": [ctypes.c_int32],
    "ttmon_ops": [ctypes.c_int32],
}


def _is_off() -> bool:
    return os.environ.get("TTMON_AGENT", "").lower() in ("off", "0", "no", "false")

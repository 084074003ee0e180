"""Loads ttmon's agent just before the first package that brings libtt_metal.so.

ttmon.pth imports this at every start of Python, so it imports nothing itself.
"""

import sys

#: ttnn, and what has tt-metal inside: tt-xla, tt-mlir's runtime.
PACKAGES = frozenset({"ttnn", "pjrt_plugin_tt", "ttrt"})


class Hook:
    """First among the finders of modules; finds none, but hears of each."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in PACKAGES:
            try:
                from ttmon._agent import activate

                activate()
            except Exception:
                pass  # A program never fails because its monitor is missing.
        return None


sys.meta_path.insert(0, Hook)

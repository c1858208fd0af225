"""Scripts of people, and how they are run where some packages are not installed."""

import runpy
import sys
from collections.abc import Sequence


class _Missing:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without(names: Sequence[str], path: str) -> None:
    """Run a script as if packages were missing."""
    sys.meta_path.insert(0, _Missing(names))
    runpy.run_path(path, run_name="__main__")

"""A trace of the calls inside the package while something runs."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import sktensor_dp

PACKAGE = Path(sktensor_dp.__file__).parent


class Arrived(BaseException):
    """Ends a walk; nothing that a fit guards against."""


def walk(call: Callable[[], Any], *, to_the_end: bool = False) -> list[tuple[str, str]]:
    """File and name of every call in the package, up to the first that draws noise."""
    seen: list[tuple[str, str]] = []
    inside, before = str(PACKAGE) + os.sep, sys.getprofile()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(inside):
            file = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
            seen.append((file, frame.f_code.co_qualname))
            if draws(*seen[-1]) and not to_the_end:
                raise Arrived

    sys.setprofile(profile)
    try:
        with suppress(Arrived):
            call()
    finally:
        sys.setprofile(before)
    assert any(draws(*step) for step in seen)
    return seen


def draws(file: str, name: str) -> bool:
    """Whether a call is one of a method of the source of noise."""
    kind, _, method = name.partition(".")
    return (file, kind) == ("privacy/noise.py", "NoiseSource") and method != "__init__"

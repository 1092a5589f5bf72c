"""Loads the extension `mrt._compiled`: what numpy is slow at, in C++, to the same bits.

It releases the interpreter's lock. Where it is absent, numpy computes. `MRT_COMPILED`
names a built extension file to use in place of the installed one.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import cache
from types import ModuleType
from typing import Any

from mrt.errors import BadOption


@cache
def extension() -> Any | None:
    """Return the extension, or None where it was not built."""
    path = os.environ.get("MRT_COMPILED")
    if path is not None:
        return _built(path)
    try:
        return importlib.import_module("mrt._compiled")
    except ImportError:  # absent, or built for another system
        return None


def _built(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_compiled", path)
    try:
        if spec is None or spec.loader is None:
            raise ImportError
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        raise BadOption(
            f"MRT_COMPILED names {path}, which is not a built extension"
        ) from None
    return module

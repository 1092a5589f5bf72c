"""WebAssembly of an export to the web, run by wasmtime: nothing of JavaScript has a part in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven

try:
    import wasmtime
except ImportError:
    wasmtime = None
NO_WASMTIME = "wasmtime is not installed: pip install wasmtime"


def outputs_of(
    form: Proven, module: bytes, sample: Mapping[str, IntArray]
) -> dict[str, IntArray]:
    """Return what one run gives. The module is given nothing to import."""
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    instance = wasmtime.Instance(store, wasmtime.Module(engine, module), [])
    exports = instance.exports(store)
    memory = exports["memory"]
    for number, item in enumerate(form.program.inputs):
        place = exports["cvm_input"](store, number)
        memory.write(store, _bytes(sample[item.name]), place)
    refused = exports["cvm_run"](store)
    assert refused == 0, f"input {refused - 1} is refused"
    found = {}
    for number, port in enumerate(form.program.outputs):
        type_ = form.types[port.value]
        dtype = DTYPES[type_.dtype].newbyteorder("<")
        place = exports["cvm_output"](store, number)
        size = type_.elements * dtype.itemsize
        held = np.frombuffer(memory.read(store, place, place + size), dtype)
        own = held.astype(DTYPES[type_.dtype])
        found[port.name] = own.reshape(type_.shape)
    return found


def _bytes(array: Any) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()

"""libcvm, compiled, and called as a program in another language calls it: through the C functions of its header."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cvm import __version__
from cvm.file import format as file_format
from cvm.plan import file as plan_file
from cvm.program import DTYPE_CODES, DTYPES, IntArray
from cvm.proof.validate import Proven

NAMES = {code: name for name, code in DTYPE_CODES.items()}
Arrays = Mapping[str, IntArray]


class Port(ctypes.Structure):
    """`cvm_port`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 6),
        ("bytes", ctypes.c_int64),
        ("lo", ctypes.c_int32),
        ("hi", ctypes.c_int32),
    )

    def facts(self) -> tuple[str, str, tuple[int, ...], int, int]:
        """Name, dtype, shape, interval."""
        shape = tuple(self.shape[: self.rank])
        return self.name.decode(), NAMES[self.dtype], shape, self.lo, self.hi


class Error(ctypes.Structure):
    """`cvm_error`."""

    _fields_ = (("text", ctypes.c_char * 512),)


class Refused(Exception):
    """What the library's error holds."""


class Library:
    """The functions of one built library."""

    def __init__(self, path: Path) -> None:
        self.calls = ctypes.CDLL(str(path))
        error = ctypes.POINTER(Error)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        amount = ctypes.c_int64
        for name, result, *arguments in (
            ("version", ctypes.c_char_p),
            ("open", pointer, ctypes.c_char_p, amount, error),
            ("open_bytes", pointer, ctypes.c_char_p, size, amount, error),
            ("free", None, pointer),
            ("program_id", ctypes.c_char_p, pointer),
            ("inputs", size, pointer),
            ("outputs", size, pointer),
            ("input", ctypes.POINTER(Port), pointer, size),
            ("output", ctypes.POINTER(Port), pointer, size),
            ("run", ctypes.c_int, pointer, pointer, pointer, ctypes.c_int, error),
        ):  # fmt: skip
            function = getattr(self.calls, f"cvm_{name}")
            function.restype, function.argtypes = result, arguments

    def open(self, path: Path, max_memory: int = 0) -> Plan:
        """A plan from a file, or Refused."""
        error = Error()
        handle = self.calls.cvm_open(str(path).encode(), max_memory, error)
        return Plan(self.calls, _opened(handle, error))

    def open_bytes(self, content: bytes, max_memory: int = 0) -> Plan:
        """A plan from bytes, or Refused."""
        error = Error()
        handle = self.calls.cvm_open_bytes(
            content, len(content), max_memory, error
        )
        return Plan(self.calls, _opened(handle, error))


def _opened(handle: int | None, error: Error) -> int:
    """One of the two is there, never both."""
    assert (handle is None) == bool(error.text)
    if handle is None:
        raise Refused(error.text.decode())
    return handle


class Plan:
    """An open plan."""

    def __init__(self, calls: ctypes.CDLL, handle: int) -> None:
        self.calls, self.handle = calls, handle
        self.inputs = [
            calls.cvm_input(handle, number).contents
            for number in range(calls.cvm_inputs(handle))
        ]
        self.outputs = [
            calls.cvm_output(handle, number).contents
            for number in range(calls.cvm_outputs(handle))
        ]
        assert not calls.cvm_input(handle, len(self.inputs))
        assert not calls.cvm_output(handle, len(self.outputs))

    @property
    def program_id(self) -> str:
        return str(self.calls.cvm_program_id(self.handle).decode())

    def run(self, sample: Arrays, threads: int = 1) -> dict[str, IntArray]:
        """Outputs by name, or Refused."""
        arrays = [
            np.require(sample[port.name.decode()], requirements=["C", "A"])
            for port in self.inputs
        ]
        results = [
            np.empty(tuple(port.shape[: port.rank]), DTYPES[NAMES[port.dtype]])
            for port in self.outputs
        ]
        for array, port in zip(
            arrays + results, self.inputs + self.outputs, strict=True
        ):
            assert array.nbytes == port.bytes
        self.run_at(_addresses(arrays), _addresses(results), threads)
        names = [port.name.decode() for port in self.outputs]
        return dict(zip(names, results, strict=True))

    def run_at(
        self, inputs: list[int | None], outputs: list[int | None], threads: int
    ) -> None:
        """As `cvm_run`, of addresses; Refused if it answers with anything but 0."""
        error = Error()
        places = [
            (ctypes.c_void_p * len(list_))(*list_)
            for list_ in (inputs, outputs)
        ]
        refused = self.calls.cvm_run(self.handle, *places, threads, error)
        assert bool(refused) == bool(error.text)
        if refused:
            raise Refused(error.text.decode())

    def free(self) -> None:
        """Must be the last call."""
        self.calls.cvm_free(self.handle)


def _addresses(arrays: list[IntArray]) -> list[int | None]:
    return [array.ctypes.data for array in arrays]


def plan_bytes(form: Proven) -> bytes:
    """The plan file of a program."""
    program_id = file_format.program_id(form.program)
    parts = plan_file.encode(form, program_id=program_id, version=__version__)
    return b"".join(parts)

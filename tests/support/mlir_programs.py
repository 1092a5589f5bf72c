"""Exported MLIR, checked by mlir-opt and run by IREE."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import numpy as np

from cvm.export.mlir.model import module_of
from cvm.program import DTYPES, IntArray
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run as run_reference

try:
    from iree import compiler, runtime
except ImportError:
    compiler = runtime = None
MLIR_OPT = shutil.which("mlir-opt-22")
NO_IREE = "iree is not installed: pip install 'mrt-cvm[iree]'"
NO_MLIR_OPT = "mlir-opt-22 is not installed: apt-get install mlir-22-tools"
OPTIONS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-hal-local-target-device-backends=llvm-cpu",
]


def mlir_opt_error(text: str) -> str:
    """Return what mlir-opt finds wrong, after parsing, verifying and judging TOSA's operators; else nothing."""
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "--verify-each", "-o", "/dev/null"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def compiled(text: str) -> Any:
    """Return the module, compiled for this processor; its functions go by name."""
    binary = compiler.compile_str(
        text,
        target_backends=["llvm-cpu"],
        input_type="auto",
        extra_args=OPTIONS,
    )
    config = runtime.Config("local-sync")
    module = runtime.VmModule.copy_buffer(config.vm_instance, binary)
    return runtime.load_vm_module(module, config)


def outputs_of(
    form: Proven, sample: Mapping[str, IntArray], text: str | None = None
) -> dict[str, IntArray]:
    """Return what IREE gives."""
    return called(compiled(text or module_of(form))["main"], form, sample)


def called(
    function: Any, form: Proven, sample: Mapping[str, IntArray]
) -> dict[str, IntArray]:
    """Return the outputs, each in its dtype; bytes without sign pass as bytes with one."""
    arrays = [_signed(sample[item.name]) for item in form.program.inputs]
    found = function(*arrays)
    every = found if isinstance(found, tuple | list) else [found]
    return {
        item.name: _restored(array, form.types[item.value].dtype)
        for item, array in zip(form.program.outputs, every, strict=True)
    }


def _signed(array: IntArray) -> IntArray:
    return array.view(np.int8) if array.dtype == np.uint8 else array


def _restored(array: Any, dtype: str) -> IntArray:
    found = np.array(array.to_host())
    return found.view(np.uint8) if dtype == "u8" else found


def differing(
    form: Proven, sample: Mapping[str, IntArray], text: str | None = None
) -> list[str]:
    """Return the names of outputs whose dtype, shape or integers are not those of the reference."""
    found = outputs_of(form, sample, text)
    expected = run_reference(form, sample)
    assert all(array.dtype in DTYPES.values() for array in found.values())
    return [
        name
        for name, array in expected.items()
        if found[name].dtype != array.dtype
        or not np.array_equal(found[name], array)
    ]

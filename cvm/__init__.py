"""The machine: load, validate and run integer programs. Usable without `mrt`.

    program = cvm.load("model.cvm")       # decoded, every rule checked, every interval proven
    outputs = program.run({"data": integers})

`cvm.validate.validate` proves a `cvm.program.Program` that was made in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from cvm.execution import Executable
    from cvm.program import IntArray
    from cvm.validate import WellFormed

__all__ = ["load", "run"]


def load(path: Path | str) -> Executable:
    """Read and prove a `.cvm` file; raises a subclass of `cvm.errors.CvmError` that says why it cannot run."""
    from cvm import format as file_format
    from cvm.execution import Executable
    from cvm.validate import validate

    proven = validate(file_format.read(Path(path)))
    return Executable(proven.program, proven.types, proven.intervals)


def run(
    form: WellFormed, arrays: Mapping[str, npt.NDArray[Any]], *, checked: bool = False, threads: int = 1
) -> dict[str, IntArray]:
    """Integers by input name, one sample or many, to integers by output name. `checked` takes the place of a proof."""
    from cvm import execution

    return execution.run(form, arrays, checked=checked, threads=threads)

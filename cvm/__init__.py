"""The machine: load, validate and run integer programs. Usable without `mrt`.

    program = cvm.load("model.cvm")       # decoded, every rule checked, every interval proven
    integers = program.quantize({"data": images})
    outputs = program.dequantize(program.run(integers, threads=2))

`cvm.proof.validate.validate` proves a `cvm.program.Program` that was made in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from cvm.program import IntArray
    from cvm.proof.validate import WellFormed
    from cvm.runtime.executable import Executable

__all__ = ["__version__", "load", "run"]
__version__ = "0.1.0"


def load(
    path: Path | str,
    *,
    engine: str = "auto",
    max_cost: int | None = None,
    max_memory: int | None = None,
) -> Executable:
    """Read and prove a `.cvm` file; raises a subclass of `cvm.errors.CvmError` with the reason if it cannot run.

    `engine`: `auto` takes the native engine if it is installed; `reference` and `native` name one. A
    program that costs more than `max_cost` a sample, or whose values hold more than `max_memory`
    bytes at once, is refused before it is proven.
    """
    from cvm.file import format as file_format
    from cvm.proof.cost import Allowance
    from cvm.proof.validate import check, prove
    from cvm.runtime.executable import Executable

    form = check(file_format.read(Path(path)))
    Allowance(max_cost, max_memory).require(form)
    return Executable.of(prove(form), engine)


def run(
    form: WellFormed,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    checked: bool = False,
    threads: int = 1,
    engine: str = "auto",
) -> dict[str, IntArray]:
    """Integers by input name, one sample or many, to integers by output name. `checked` takes the place of a proof.

    `form` is what `load` gives, or `cvm.proof.validate` of a program made in memory.
    """
    from cvm.proof.validate import WellFormed
    from cvm.runtime import execution

    if not isinstance(form, WellFormed):
        raise TypeError(
            f"form: found {type(form).__name__}; expected a program as cvm.load(path) or cvm.proof.validate.validate gives it"
        )
    return execution.run(
        form, arrays, checked=checked, threads=threads, engine=engine
    )

"""What `main.c` compares: a fixed sequence of integers as inputs, and the digests of the reference machine's outputs."""

from __future__ import annotations

from cvm.export.c.instruction import C_TYPES
from cvm.export.c.source import Ports
from cvm.export.samples import STEP, samples_of
from cvm.program import (
    DTYPE_CODES,
    DTYPES,
    Input,
    TensorType,
)
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import digests_of


def texts(form: Proven, ports: Ports) -> dict[str, str]:
    """The loops that fill the inputs, and those that compare the outputs."""
    program = form.program
    samples = samples_of(program)
    digests = digests_of(interpreter.run(form, samples))
    fill = [
        _fill(field, port, number)
        for number, (field, port) in enumerate(
            zip(ports.inputs, program.inputs, strict=True)
        )
    ]
    compare = [
        _compare(field, form.types[port.value], digests[port.name].hex())
        for field, port in zip(ports.outputs, program.outputs, strict=True)
    ]
    return {"FILL": "\n".join(fill), "COMPARE": "\n".join(compare)}


def _fill(field: str, input_: Input, number: int) -> str:
    start, span = number * STEP % 2**32, input_.hi - input_.lo + 1
    place = f"(uint32_t)i + UINT32_C({start})" if start else "(uint32_t)i"
    value = f"below({place}, UINT64_C({span}))"
    if input_.lo:
        value += f" + (INT64_C({input_.lo}))"
    c_type = C_TYPES[input_.type.dtype]
    head = f"  for (int32_t i = 0; i < {input_.type.elements}; i++)"
    return f"{head} inputs.{field}[i] = ({c_type})({value});"


def _compare(field: str, type_: TensorType, digest: str) -> str:
    """A value's digest begins with its type (SPEC section 7)."""
    head = bytes([DTYPE_CODES[type_.dtype], type_.rank])
    for dimension in type_.shape:
        head += dimension.to_bytes(8, "little")
    width = DTYPES[type_.dtype].itemsize
    return "\n".join(
        [
            "  {",
            f"    static const uint8_t head[{len(head)}] = {{{', '.join(map(str, head))}}};",
            f"    begin(&hash, head, {len(head)});",
            f"    for (int32_t i = 0; i < {type_.elements}; i++) add_integer(&hash, outputs.{field}[i], {width});",
            f'    same &= compare(&hash, "{field}", "{digest}");',
            "  }",
        ]
    )

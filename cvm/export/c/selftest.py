"""What `main.c` compares: a fixed sequence of integers as inputs, and the digests of the reference machine's outputs."""

from __future__ import annotations

from cvm.export.c.instruction import C_TYPES
from cvm.export.c.source import Ports
from cvm.export.samples import STEP, sample
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
    samples = {
        item.name: sample(item, number)
        for number, item in enumerate(program.inputs)
    }
    digests = digests_of(interpreter.run(form, samples))
    fill = [
        _fill(field, item, number)
        for number, (field, item) in enumerate(
            zip(ports.inputs, program.inputs, strict=True)
        )
    ]
    compare = [
        _compare(field, form.types[item.value], digests[item.name].hex())
        for field, item in zip(ports.outputs, program.outputs, strict=True)
    ]
    return {"FILL": "\n".join(fill), "COMPARE": "\n".join(compare)}


def _fill(field: str, item: Input, number: int) -> str:
    start, span = number * STEP % 2**32, item.hi - item.lo + 1
    place = f"(uint32_t)i + UINT32_C({start})" if start else "(uint32_t)i"
    value = f"below({place}, UINT64_C({span}))"
    if item.lo:
        value += f" + (INT64_C({item.lo}))"
    c_type = C_TYPES[item.type.dtype]
    head = f"  for (int32_t i = 0; i < {item.type.elements}; i++)"
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

"""The programs of single operators, byte for byte: the same model and table give the same program on every machine.

A rule that is reorganised must not change a bit, and a change that means to alter programs
shows here which operators it touches. `operator_programs.json` beside this file holds, for
each case, the first 16 digits of a SHA-256 over the programs of all `VARIANTS`, quantized
with invented ranges. `python -m tests.mrt.test_operator_programs` records it anew; the
commit explains why. What the numbers mean is held elsewhere: here only that they stay.
"""

import hashlib
import json
import tempfile
from pathlib import Path

import onnx
import pytest

from cvm.file import format as file_format
from mrt.errors import MrtError
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from tests.support.invented_ranges import invented_table
from tests.support.operator_cases import CASES, Case

RECORD = Path(__file__).with_name("operator_programs.json")
VARIANTS = (
    QuantizeOptions(),
    QuantizeOptions(weight_bits=5, activation_bits=6, scales="shift"),
    QuantizeOptions(weight_bits=12, activation_bits=16),
    QuantizeOptions(scheme="affine", per_channel=False, unsigned=False),
)


def digest(case: Case, folder: Path) -> str:
    """Of the programs, or refusals, of all variants."""
    path = folder / "case.onnx"
    onnx.save(case.model(), path)
    found = hashlib.sha256()
    for options in VARIANTS:
        try:
            found.update(program_bytes(path, options))
        except MrtError as problem:
            found.update(str(problem).replace(str(folder), "").encode())
    return found.hexdigest()[:16]


def program_bytes(path: Path, options: QuantizeOptions) -> bytes:
    model, sha256 = load_onnx(path)
    rewrite(model)
    table = invented_table(model, sha256)
    return file_format.encode(quantize(model, table, options))


def test_every_case_is_recorded():
    assert sorted(json.loads(RECORD.read_text())) == sorted(
        case.name for case in CASES
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_program_keeps_its_bytes(case, tmp_path):
    assert digest(case, tmp_path) == json.loads(RECORD.read_text())[case.name]


def record() -> None:
    """Write `operator_programs.json` anew."""
    with tempfile.TemporaryDirectory() as folder:
        found = {case.name: digest(case, Path(folder)) for case in CASES}
    RECORD.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    record()

"""`cvm show --plan`: what a person and a program can read of a plan, without the engine."""

import json
from pathlib import Path

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from tests.support.command import cvm, said


@pytest.fixture
def program_path(tmp_path: Path) -> Path:
    """conv2d 3x3/2 + rescale, pooling, a dense step behind a reshape."""
    constants = (
        np.ones((8, 3, 3, 3), np.int8),
        np.zeros(8, np.int32),
        np.array([2**30], np.int32),
        np.array([35], np.int8),
        np.ones((5, 8), np.int8),
        np.zeros(5, np.int32),
    )
    conv = {
        "pad": (1, 0, 1, 0),
        "stride": (2, 2),
        "dilation": (1, 1),
        "groups": 1,
        "input_zp": 0,
    }
    instructions = (
        Instruction("transpose", (0,), {"perm": (0, 2, 3, 1)}),
        Instruction("conv2d", (7, 1, 2), conv),
        Instruction(
            "rescale", (8, 3, 4), {"input_zp": 0, "output_zp": 0, "dtype": "i8"}
        ),
        Instruction(
            "max_pool2d",
            (9,),
            {"kernel": (4, 4), "stride": (1, 1), "pad": (0, 0, 0, 0)},
        ),
        Instruction("reshape", (10,), {"shape": (1, 8)}),
        Instruction("dense", (11, 5, 6), {"input_zp": 0}),
    )
    image = Input("image", TensorType("i8", (1, 3, 8, 8)), -128, 127)
    path = tmp_path / "p.cvm"
    file_format.write(
        Program((image,), constants, instructions, (Output("scores", 12),)),
        path,
    )
    return path


def test_show_plan_lists_steps_places_and_totals(program_path: Path) -> None:
    found = cvm("show", "--plan", program_path)
    assert found.exit_code == 0
    lines = [line.split("  ") for line in found.output.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[2] == [
        "step",
        "what",
        "values",
        "result",
        "lies in",
        "MACs",
        "constants",
    ]
    assert cells[3:7] == [
        ["0", "transpose", "%7", "i8[1,8,8,3]", "arena 0..192", "-", "-"],
        [
            "1",
            "conv2d 3x3/2 3->8 + rescale",
            "%8..%9",
            "i8[1,4,4,8]",
            "arena 192..320",
            "3,456",
            "253",
        ],
        ["2", "max_pool2d 4x4", "%10", "i8[1,1,1,8]", "arena 0..8", "-", "-"],
        ["3", "dense 8->5", "%12", "i32[1,5]", "output scores", "40", "60"],
    ]
    assert found.output.splitlines()[8:] == [
        "6 instructions in 4 steps; 1 need none",
        "values live at once  320 bytes, at most",
        "arena                320 bytes, 1.00 times that",
        "constants            313 bytes",
    ]


def test_show_plan_prints_json(program_path: Path) -> None:
    found = json.loads(cvm("show", "--plan", "--json", program_path).output)
    assert (found["instructions"], len(found["steps"])) == (6, 4)
    assert (
        found["arena_bytes"],
        found["largest_live_bytes"],
        found["constant_bytes"],
    ) == (320, 320, 313)
    assert found["steps"][1] == {
        "what": "conv2d 3x3/2 3->8 + rescale",
        "values": [8, 9],
        "result": "i8[1,4,4,8]",
        "place": "arena 192..320",
        "multiply_accumulates": 3456,
        "constant_bytes": 253,
    }


def test_json_of_show_needs_a_plan(program_path: Path) -> None:
    assert (
        said(cvm("show", "--json", program_path), 2)
        == "show prints JSON with --plan or --secret only"
    )

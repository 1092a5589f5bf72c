"""A damaged file is refused by name or means something: never another exception."""

import contextlib
import random

import pytest

from mrt.errors import MrtError
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.operator_cases import CASES


def damage(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        where, kind = rng.randrange(len(damaged)), rng.random()
        if kind < 0.6:
            damaged[where] = rng.randrange(256)
        elif kind < 0.8:
            damaged[where] ^= 1 << rng.randrange(8)
        elif kind < 0.9:
            damaged[where:where] = rng.randbytes(rng.randrange(1, 5))
        else:
            del damaged[where : where + rng.randrange(1, 9)]
        damaged = damaged or bytearray(b"x")
    return bytes(damaged)


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_damaged_files(count, tmp_path):
    rng = random.Random(count)
    files = [case.model().SerializeToString() for case in CASES]
    path = tmp_path / "damaged.onnx"
    survivors = 0
    for _ in range(count):
        path.write_bytes(damage(rng.choice(files), rng))
        with contextlib.suppress(MrtError):
            rewrite(load_onnx(path)[0])
            survivors += 1
    assert 0 < survivors < count

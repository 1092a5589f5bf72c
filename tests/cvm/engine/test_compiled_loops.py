"""What a compiler made of the loops of products: sums stay in their registers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t(.*)$", re.MULTILINE)
JUMP_BACK = re.compile(r"j\w+ +(?:0x)?([0-9a-f]+)")
PRODUCT = re.compile(r"(\{vex\} )?vpdp(busd|wssd) ")
SPREAD = re.compile(r"vpbroadcastd .*\(")  # four bytes of a row
STORE = re.compile(r"vmov\w+ +%[yz]mm\d+,.*\(")
COPY = re.compile(r"vmov\w+ +%[yz]mm\d+,%[yz]mm\d+")
MOST = 100  # instructions of a loop
LARGE = 8  # products of a large tile

Loop = list[str]


def _loops(listing: str) -> Iterator[Loop]:
    """Yield the instructions of innermost loops that multiply large tiles."""
    addressed = INSTRUCTION.findall(listing)
    places = {address: n for n, (address, _) in enumerate(addressed)}
    texts = [text for _, text in addressed]
    last_begin = -1
    for end, text in enumerate(texts):
        jump = JUMP_BACK.match(text)
        begin = places.get(jump[1], end) if jump else end
        if not end - MOST < begin < end or begin <= last_begin:
            continue
        last_begin = begin
        loop = texts[begin : end + 1]
        products = sum(bool(PRODUCT.match(line)) for line in loop)
        if products >= LARGE and any(map(SPREAD.match, loop)):
            yield loop


@pytest.fixture(scope="module")
def loops() -> list[Loop]:
    """Return the loops of the engine that is installed."""
    if "CVM_ENGINE" in os.environ:
        pytest.skip("CVM_ENGINE may name a build that is not optimised")
    engine = find_spec("cvm._engine")
    if engine is None or engine.origin is None:
        pytest.skip("the engine is not built here")
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed (apt install binutils)")
    words = ["objdump", "-d", "--no-show-raw-insn", engine.origin]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    if "x86-64" not in done.stdout[:200]:
        pytest.skip("these instructions are those of x86-64")
    return [*_loops(done.stdout)]


@pytest.mark.parametrize("register", ["ymm", "zmm"])
def test_loops_of_large_tiles_neither_store_nor_copy_sums(
    loops: list[Loop], register: str
) -> None:
    """Sums in memory cost gcc 13 a third of the engine's speed."""
    of_set = [loop for loop in loops if register in "".join(loop)]
    assert len(of_set) > 50
    spilling = [
        "\n".join(loop)
        for loop in of_set
        if any(STORE.match(text) or COPY.match(text) for text in loop)
    ]
    assert not spilling, f"{len(spilling)} of {len(of_set)}:\n{spilling[0]}"

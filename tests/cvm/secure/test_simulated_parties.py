"""Parties in one process, with a stand-in for SPU whose shares hide nothing."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from cvm.secure.protocols import protocol_of


class Adder:
    """A party whose output is the sum of both inputs."""

    def __init__(self, *given):
        self.held = {}

    def give(self, place, share):
        self.held[place] = share

    def run(self):
        return [self.held[0] + self.held[1]], "effort"


@pytest.fixture(name="parties")
def _parties(monkeypatch):
    """The module, which imports SPU where it is."""
    stand_in = ModuleType("cvm.secure.spu_link")
    stand_in.Effort, stand_in.Party = str, Adder
    stand_in.memory_link = lambda protocol, rank: None
    stand_in.shares_of = lambda array, protocol, secret: [array, 0, 0]
    stand_in.opened = lambda shares, protocol: sum(shares)
    compiled = ModuleType("cvm.secure.compiled")
    compiled.SpuProgram = object
    for module in (stand_in, compiled):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "cvm.secure.parties", raising=False)
    yield importlib.import_module("cvm.secure.parties")
    del sys.modules["cvm.secure.parties"]


def test_nothing_that_was_opened_is_carried_on(parties):
    compiled = SimpleNamespace(
        executable=b"", program=SimpleNamespace(inputs=("x", "sum")), weights=()
    )
    terms = compiled, protocol_of("aby3"), None, ((1, 0),)
    machine = parties.SimulatedParties(*terms)
    one, start = np.array([1]), np.array([10])
    for _ in range(2):
        machine.take([one, start])
        machine.take([one, start])
        assert [array.tolist() for array in machine.open()] == [[12]]

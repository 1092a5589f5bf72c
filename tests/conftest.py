"""Random numbers are the same in every test, whatever ran before it: tests run in any order, on several workers.

Millions of objects stand for the tests. The garbage collector begins behind them: while tests are collected it would take a
third of the time, in every worker.
"""

import gc
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

import numpy as np
import pytest

gc.disable()

_AFTER_IMPORT: dict[np.random.Generator, dict] = {}


def _generators(modules: Iterable[ModuleType]) -> Iterator[np.random.Generator]:
    for module in modules:
        yield from (
            item
            for item in vars(module).values()
            if isinstance(item, np.random.Generator)
        )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note where the generators of test modules, and of modules that they share, stand before the first test."""
    shared = [
        module
        for name, module in sys.modules.items()
        if name.startswith("tests.")
    ]
    for generator in _generators(
        [
            *shared,
            *(
                item.module
                for item in session.items
                if isinstance(item, pytest.Function)
            ),
        ]
    ):
        _AFTER_IMPORT.setdefault(generator, generator.bit_generator.state)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Each starts anew, also for what fixtures draw."""
    for generator, state in _AFTER_IMPORT.items():
        generator.bit_generator.state = state


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef):
    """What tests share is drawn apart: the one that happens to be first draws for itself what the others do."""
    before = {
        generator: generator.bit_generator.state for generator in _AFTER_IMPORT
    }
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            for generator, state in before.items():
                generator.bit_generator.state = state

"""Memory is given back where the system shows how much a process has, and left alone elsewhere."""

from pathlib import Path

import pytest

from mrt import memory


def test_a_system_that_shows_no_memory_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chroot may have no /proc."""
    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    monkeypatch.setattr(memory, "_trim", lambda: pytest.fail("gave back"))
    with memory.giving_back():
        held = bytearray(2 * memory.GROWTH)
    memory.Surplus().give_back()
    assert len(held) == 2 * memory.GROWTH

"""How the attributes of an instruction are read."""

from __future__ import annotations

from collections.abc import Mapping

Attribute = int | bool | str | tuple[int, ...]


class WithAttributes:
    """What has attributes, of the types that the list of instructions gives them."""

    attributes: Mapping[str, Attribute]

    def integer(self, name: str) -> int:
        """An `int` or `bool` attribute."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """An `ints` attribute."""
        value = self.attributes[name]
        assert isinstance(value, tuple)
        return value

    def word(self, name: str) -> str:
        """A `dtype` or `mode` attribute."""
        value = self.attributes[name]
        assert isinstance(value, str)
        return value

"""`instructions.toml` as frozen data: the one list that validation, the file format and both interpreters read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class InstructionSpec:
    """One row of the list."""

    name: str
    opcode: int
    family: str
    stage: bool
    inputs: tuple[str, ...]
    constant: frozenset[str]
    attributes: Mapping[str, str]
    since: int

    @property
    def variadic(self) -> bool:
        """Whether the last operand may repeat."""
        return self.inputs[-1].endswith("*")


def _read() -> dict[str, InstructionSpec]:
    rows = tomllib.loads(
        files("cvm").joinpath("instructions.toml").read_text(encoding="utf-8")
    )
    return {
        name: InstructionSpec(
            name=name,
            opcode=row["opcode"],
            family=row["family"],
            stage=row.get("stage", False),
            inputs=tuple(row["inputs"]),
            constant=frozenset(row.get("constant", ())),
            attributes=row.get("attributes", {}),
            since=row["since"],
        )
        for name, row in rows.items()
    }


INSTRUCTIONS: Mapping[str, InstructionSpec] = _read()
BY_OPCODE: Mapping[int, InstructionSpec] = {
    spec.opcode: spec for spec in INSTRUCTIONS.values()
}

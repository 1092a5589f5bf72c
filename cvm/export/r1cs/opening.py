"""The salts of commitments: whoever has them can check that an array is the committed one. They are no part of a proof."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvm.errors import BadInput
from cvm.export.r1cs.commitment import SALT_BYTES, commitment_of
from cvm.file import document
from cvm.file.disk import read_bounded
from cvm.program import IntArray, Program
from cvm.proof.validate import WellFormed

FORMAT = "cvm-opening-1"
HEX = 64  # digits of an element of the field


@dataclass(frozen=True)
class Opening:
    """Salts by name; what lacks one has the salt 0, which hides nothing."""

    inputs: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def random(cls, program: Program) -> Opening:
        """Salts that nobody else has."""
        return cls(
            {port.name: _random() for port in program.inputs},
            {port.name: _random() for port in program.outputs},
        )

    def require_salts(self, program: Program, path: Path) -> None:
        """BadInput unless there is a salt for each input and output."""
        for kind, ports, salts in (
            ("input", program.inputs, self.inputs),
            ("output", program.outputs, self.outputs),
        ):
            for port in ports:
                if port.name not in salts:
                    raise BadInput(
                        f"{path}: it has no salt for the {kind} {port.name!r}; name another file, to be written"
                    )

    def to_json(self) -> str:
        """The text of the file."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "inputs": {name: as_hex(x) for name, x in self.inputs.items()},
            "outputs": {name: as_hex(x) for name, x in self.outputs.items()},
        }
        return document.dump(content)


def read(path: Path) -> Opening:
    """The salts of a file."""
    data = read_bounded(path, document.MAX_BYTES)
    reader = document.DocumentReader(data, str(path))

    def salts(where: str) -> dict[str, int]:
        content = {
            name: int.from_bytes(digest, "big")
            for name, digest in reader.digests_by_name(where).items()
        }
        for name, salt in content.items():
            if salt >= 2 ** (8 * SALT_BYTES):
                raise reader.fault(
                    f"{where}[{name!r}]",
                    "must be below 2^248, and begin with 00",
                )
        return content

    keys = {"inputs": salts, "outputs": salts}
    content = reader.document([FORMAT], keys, {})
    return Opening(content["inputs"], content["outputs"])


def commitments(
    form: WellFormed,
    opening: Opening,
    inputs: Mapping[str, IntArray],
    outputs: Mapping[str, IntArray],
) -> dict[str, dict[str, str]]:
    """The commitments of these inputs and outputs, by name."""
    types = {port.name: port.type for port in form.program.inputs}
    results = {
        port.name: form.types[port.value] for port in form.program.outputs
    }
    return {
        "inputs": {
            name: as_hex(
                commitment_of(array, types[name].dtype, opening.inputs[name])
            )
            for name, array in inputs.items()
        },
        "outputs": {
            name: as_hex(
                commitment_of(array, results[name].dtype, opening.outputs[name])
            )
            for name, array in outputs.items()
        },
    }


def as_hex(number: int) -> str:
    """An element of the field, in 64 digits."""
    return f"{number:0{HEX}x}"


def _random() -> int:
    return int.from_bytes(secrets.token_bytes(SALT_BYTES), "big")

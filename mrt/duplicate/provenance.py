"""What a program says of the twins it was made with, so that its values can be compared with those of the same float model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cvm.program import Program
from mrt.duplicate.add_duplicates import Duplicates
from mrt.errors import BadData
from mrt.table.table import are_channels

PROVENANCE = "twins"  # {value: [channels]} as JSON


def duplicates_provenance(duplicates: Duplicates) -> dict[str, str]:
    """The entry; none where there are no twins."""
    return (
        {
            PROVENANCE: json.dumps(
                dict(duplicates), sort_keys=True, separators=(",", ":")
            )
        }
        if duplicates
        else {}
    )


def read_duplicates(program: Program) -> dict[str, list[int]]:
    """What the program says, which may have come from anywhere; `add_duplicates` judges whether a model has such channels."""
    text = program.said_of(PROVENANCE)
    if text is None:
        return {}
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadData(
            f"the program's provenance '{PROVENANCE}' cannot be used: {problem}"
        ) from None
    if not isinstance(content, Mapping) or not all(map(are_channels, content.values())):
        raise BadData(
            f"the program's provenance '{PROVENANCE}' cannot be used: expected channels by value, found {text[:80]}"
        )
    return dict(content)

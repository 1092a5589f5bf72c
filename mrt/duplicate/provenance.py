"""The duplicated channels as an entry of a program's provenance.

The entry allows a comparison of the program's values with those of the same float
model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cvm.program import Program
from mrt.duplicate.add_duplicates import Duplicates
from mrt.errors import BadData
from mrt.table.table import are_channels

PROVENANCE = "twins"  # the entry's name in files: {value: [channels]} as JSON


def duplicates_provenance(duplicates: Duplicates) -> dict[str, str]:
    """Return the entry; none where no channel is duplicated."""
    if not duplicates:
        return {}
    text = json.dumps(dict(duplicates), sort_keys=True, separators=(",", ":"))
    return {PROVENANCE: text}


def read_duplicates(program: Program) -> dict[str, list[int]]:
    """Return the duplicated channels of a program, which may come from an untrusted file.

    `add_duplicates` checks whether a model has such channels.
    """
    text = program.provenance_of(PROVENANCE)
    if text is None:
        return {}
    failure = f"the program's provenance '{PROVENANCE}' cannot be used"
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadData(f"{failure}: {problem}") from None
    if not isinstance(content, Mapping) or not all(
        map(are_channels, content.values())
    ):
        raise BadData(
            f"{failure}: expected channels by value, found {text[:80]}"
        )
    return dict(content)

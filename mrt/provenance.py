"""The entries of a program's provenance.

Their bytes are part of the program file, so names and order stay as they are.
"""

from __future__ import annotations

import json

from cvm.program.decoder import states_provenance
from mrt.config import Config
from mrt.duplicate import duplicates_provenance
from mrt.frontend import LoadedModel
from mrt.graph.states import states_of
from mrt.options import provenance_of
from mrt.pictures import provenance as picture_provenance
from mrt.table.table import CalibrationTable


def provenance(
    loaded: LoadedModel, table: CalibrationTable, config: Config
) -> dict[str, str]:
    """Return the origin of a program: model, preprocessing, table and options, as text."""
    return {
        "model_sha256": loaded.sha256,
        "model_format": loaded.origin,
        **picture_provenance(loaded.model, config),
        **duplicates_provenance(table.duplicates),
        **states_provenance(states_of(loaded.model)),
        "table_sha256": table.sha256,
        **provenance_of(config.quantization),
        "layers": json.dumps(config.quantization.key()["layers"]),
    }

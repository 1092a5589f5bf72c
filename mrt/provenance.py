"""The entries of a program's provenance.

Their bytes are part of the program file, so names and order stay as they are.
"""

from __future__ import annotations

import hashlib
import json

from cvm.program.decoder import states_provenance
from cvm.program.limits import MAX_TEXT_BYTES
from mrt.config import Config
from mrt.duplicate import duplicates_provenance
from mrt.frontend import LoadedModel
from mrt.graph.states import states_of
from mrt.options import options_of, provenance_of
from mrt.pictures import provenance as picture_provenance
from mrt.quantize import QuantizeOptions
from mrt.table.table import CalibrationTable

LAYERS = "layers"
CHOSEN = "chosen_layers"  # the digest of all layers, where these are too many


def provenance(
    loaded: LoadedModel,
    table: CalibrationTable,
    config: Config,
    written: QuantizeOptions,
) -> dict[str, str]:
    """Return the origin of a program: model, preprocessing, table and options, as text.

    `written` are the options as people gave them, before those that stand for many layers
    were applied to each of these.
    """
    return {
        "model_sha256": loaded.sha256,
        "model_format": loaded.origin,
        **picture_provenance(loaded.model, config),
        **duplicates_provenance(table.duplicates),
        **states_provenance(states_of(loaded.model)),
        "table_sha256": table.sha256,
        **provenance_of(config.quantization),
        **_layers(config.quantization, written),
    }


def _layers(
    chosen: QuantizeOptions, written: QuantizeOptions
) -> dict[str, str]:
    """Return the bits of single layers.

    Where they are too long for an entry, return what was written, and the digest of the whole.
    """
    text = _layers_text(chosen)
    if _fits(text):
        return {LAYERS: text}
    written_text = _layers_text(written)
    return {
        **_unrecorded(written),
        LAYERS: written_text if _fits(written_text) else _digest(written_text),
        CHOSEN: _digest(text),
    }


def _layers_text(options: QuantizeOptions) -> str:
    return json.dumps(options.key()["layers"])


def _fits(text: str) -> bool:
    return len(text.encode()) <= MAX_TEXT_BYTES


def _digest(text: str) -> str:
    data = text.encode()
    return f"sha256 {hashlib.sha256(data).hexdigest()} of {len(data)} bytes"


def _unrecorded(options: QuantizeOptions) -> dict[str, str]:
    """Return the given options that have no entry otherwise, since the bits of the layers record their effect."""
    return {
        declared.name: str(value)
        for declared in options_of(QuantizeOptions)
        if declared.in_provenance == "never"
        and (value := getattr(options, declared.name)) != declared.default
    }

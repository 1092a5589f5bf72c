"""The stages of refinement, in the order in which they run.

A stage is a file here and a name of `--refine`. A new one needs its file, its place in
one of the three lists below and a field of `mrt.refine.options.RefineOptions`:

- stages of the model run before calibration and may change the model;
- stages of channels run once ranges are known, for all values between layers;
- stages of layers run for one layer after another, in the order of the program.
"""

from typing import Any

from mrt.refine.stages.biases import BIASES
from mrt.refine.stages.centres import CENTRES
from mrt.refine.stages.duplicates import DUPLICATES
from mrt.refine.stages.fit import FIT
from mrt.refine.stages.scales import SCALES
from mrt.refine.stages.stage import (
    ChannelState,
    Halves,
    LayerState,
    ModelState,
    Needs,
    RefineStage,
    TooLarge,
)
from mrt.refine.stages.weights import WEIGHTS

MODEL_STAGES: tuple[RefineStage[ModelState], ...] = (DUPLICATES,)
CHANNEL_STAGES: tuple[RefineStage[ChannelState], ...] = (CENTRES, SCALES)
LAYER_STAGES: tuple[RefineStage[LayerState], ...] = (FIT, WEIGHTS, BIASES)

STAGES: tuple[RefineStage[Any], ...] = (
    *MODEL_STAGES,
    *CHANNEL_STAGES,
    *LAYER_STAGES,
)

__all__ = [
    "CHANNEL_STAGES",
    "LAYER_STAGES",
    "MODEL_STAGES",
    "STAGES",
    "ChannelState",
    "Halves",
    "LayerState",
    "ModelState",
    "Needs",
    "RefineStage",
    "TooLarge",
]

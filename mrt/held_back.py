"""Which samples a conversion sets aside: for its verdict, or for a search for bits."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from mrt import project
from mrt.calibrate.held_back import count_for_verdict, count_to_hold_back
from mrt.calibrate.samples import Samples
from mrt.config import Config
from mrt.errors import BadData
from mrt.tune import TuningTarget


def held_back_for_verdict(model: ir.Model, config: Config) -> Config:
    """Return the configuration with samples held back for the verdict.

    Unchanged if it states how many, or names other samples to evaluate on.
    """
    data = config.calibration_data
    if data.path is None or data.held_back is not None:
        return config
    if has_samples_to_evaluate(config):
        return config
    all_samples = replace(data, samples=None)
    total = len(project.open_data(model, config, all_samples))
    count = count_for_verdict(total, data.samples)
    return _holding_back(config, count) if count else config


def has_samples_to_evaluate(config: Config) -> bool:
    """Whether the configuration names samples to evaluate on that are not those to calibrate on."""
    path = config.evaluation_data.path
    is_other = path not in (None, config.calibration_data.path)
    return is_other and path is not None and path.exists()


def held_back_for_search(
    model: ir.Model, config: Config, target: TuningTarget
) -> Config:
    """Return the configuration with samples held back for a search, unless it states how many.

    BadData or BadOption if these are too few.
    """
    data = config.calibration_data
    if data.held_back:
        return config
    samples = project.open_data(model, config, data)
    count = count_to_hold_back(samples, target.samples_needed)
    require_able_to_tell(target, samples, count)
    return _holding_back(config, count)


def require_able_to_tell(
    target: TuningTarget, samples: Samples, held_back: int
) -> None:
    """BadData or BadOption if so many of these samples, held back, cannot tell whether the target is met."""
    if target.kind == "drop" and samples.labels is None:
        raise BadData(
            f"{samples.source}: has no labels, which --target-drop needs; "
            "use --target-agreement"
        )
    target.require_samples(held_back, samples.source)


def _holding_back(config: Config, count: int) -> Config:
    data = replace(config.calibration_data, held_back=count)
    return replace(config, calibration_data=data)

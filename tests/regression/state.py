"""The state of one model: converted at 8 bits and mostly with 16-bit activations too, run in integers and held against float."""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from mrt.calibrate.samples import Samples, synthetic_samples
from mrt.calibrate.session import integer_input_intervals, model_inputs
from mrt.config import Config
from mrt.errors import MrtError
from mrt.evaluate import evaluate
from mrt.pipeline import convert
from mrt.project import load_to_run, open_data
from tests.regression.cases import Case
from tests.regression.memory import peak_class

State = Mapping[str, Any]
EXACT = "exact"
TIMES = (0.5, 2, 8, 32)  # seconds of a processor, where classes end
CLASSES = (*(f"under {limit} s" for limit in TIMES), "longer")


def state_of(case: Case) -> State:
    """Signal to noise in dB (the worst output's) by bits, or why it is refused; classes kept of so many; time class.

    Also the class of the memory that this process had at most when the first conversion, to 8 bits, was done.
    If the float file holds weights, also the bytes of the program of 8 bits, and their share of that file in percent.
    """
    config, state = case.config, dict[str, Any]()
    for bits in case.bits:
        options = replace(config.quantization, activation_bits=bits)
        fitted = replace(
            config,
            quantization=options,
            calibration=replace(config.calibration, bits=bits),
        )
        start = time.process_time()
        try:
            conversion = convert(
                fitted, table=None, progress=lambda what, done, total: None
            )
        except MrtError as problem:
            state[f"{bits} bits"] = "refused: " + " ".join(str(problem).split())
            continue
        taken = time.process_time() - start
        peak = peak_class(conversion.model.model)  # before anything else runs
        model = load_to_run(config).model
        report = evaluate(
            model,
            conversion.proven,
            samples_of(config, model, conversion.model.model),
        )
        ratios = [
            EXACT if ratio is None else round(ratio, 1)
            for ratio in report.snr_db.values()
        ]
        state[f"{bits} bits"] = min(ratios, key=decibels)
        if bits == 8:
            if config.model.random_weights is None:
                size = len(conversion.data)
                state["bytes"] = size
                share = 100 * size / _float_bytes(case, config)
                state["% of float"] = round(share, 1)
            state["time"] = CLASSES[bisect(TIMES, taken)]
            if peak is not None:
                state["memory"] = peak
            if (
                report.agreement is not None
                and config.evaluation_data.path is not None
            ):
                state["same class"] = (
                    f"{round(report.agreement * report.samples)} of {report.samples}"
                )
    return state


def _float_bytes(case: Case, config: Config) -> int:
    """Of the model's file, and of the file of weights beside it."""
    params = config.model.params
    files = [case.path] if params is None else [case.path, params]
    return sum(path.stat().st_size for path in files)


def samples_of(config: Config, model: ir.Model, rewritten: ir.Model) -> Samples:
    """The evaluation data or, of a model without, noise that is not the calibration's."""
    if config.evaluation_data.path is not None:
        return open_data(model, config, config.evaluation_data)
    shapes = {
        str(value.name): tuple(value.shape.numpy())
        for value in model_inputs(rewritten)
    }
    return synthetic_samples(
        shapes,
        config.evaluation_data.samples or 1,
        seed=1,
        intervals=integer_input_intervals(rewritten),
    )


def decibels(ratio: float | str) -> float:
    """A ratio as a number: no difference is better than any."""
    return float("inf") if isinstance(ratio, str) else ratio

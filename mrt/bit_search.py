"""With a target: the search for the cheapest bits that meet it, on samples held back."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from mrt import project
from mrt.calibrate.held_back import MOST, split
from mrt.config import Config
from mrt.errors import BadOption
from mrt.held_back import held_back_for_search, require_able_to_tell
from mrt.job import ConversionJob
from mrt.progress import no_progress
from mrt.quantize import QuantizeOptions
from mrt.refine import refine as refine_table
from mrt.table.table import CalibrationTable
from mrt.tune import TuningResult, TuningTarget
from mrt.tune import tune as search_bits
from mrt.tune.evaluator import Evaluator
from mrt.tune.programs import Programs


def prepared_for_search(job: ConversionJob) -> Config:
    """Return the configuration for a search: without duplicated channels, and with samples held back.

    Where a search assigns 16 bits, duplicated channels would cost products without any
    gain. With a given table no sample is used for calibration, so all of them serve the
    search.
    """
    assert job.target is not None
    if job.config.refinement.extra_products is not None:
        raise BadOption(
            "extra products and a target: a search for bits makes no copies of channels; leave one of them out"
        )
    refinement = replace(job.config.refinement, duplicates=False)
    config = replace(job.config, refinement=refinement)
    if config.calibration_data.path is None:
        raise BadOption(
            "a target needs samples to be measured on: --data, or a --config whose "
            "[calibration] names some"
        )
    if job.given_table is not None:
        return config
    return held_back_for_search(job.model, config, job.target)


def search(job: ConversionJob, target: TuningTarget) -> TuningResult:
    """Return the bits of the cheapest program that meets the target. BadOption or BadData where the samples are too few to tell."""
    config = job.config
    data = config.calibration_data
    samples = project.open_data(job.model, config, replace(data, held_back=0))
    count = data.held_back or min(len(samples) - 1, MOST)
    require_able_to_tell(target, samples, count)
    others, held = split(samples, count)
    programs = Programs(job.model, partial(_refined, job))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        evaluator = Evaluator(
            job.model,
            list(held),
            pool,
            labels=held.labels,
            others=others,
            classes=target.kind != "snr",
            class_output=target.class_output,
        )
        return search_bits(
            job.model,
            programs,
            evaluator,
            config.quantization,
            target,
            job.progress,
        )


def _refined(job: ConversionJob, options: QuantizeOptions) -> CalibrationTable:
    """Return the measured table with the decisions for these options; others may follow."""
    if job.statistics is None:
        return job.measured
    statistics = job.statistics.again()
    return refine_table(
        job.model, job.measured, options, job.stages, statistics, no_progress
    )

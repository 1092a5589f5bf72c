"""The pipeline from a model file to a proven program, as the list `STAGES` of functions of mrt/stages.py.

    load       the model's file becomes a float graph, or is refused        mrt/frontend
    rewrite    the float graph becomes canonical                            mrt/rewrite
    duplicate  channels for which 8 bits are too coarse get a second copy   mrt/duplicate
    calibrate  the range of every value goes into a table                   mrt/calibrate
    tune       with a target: the cheapest bits that meet it                mrt/tune
    refine     more decisions on the samples join the table                 mrt/refine
    quantize   ranges become scales, operators become instructions          mrt/quantize
    prove      no input can make any value overflow                         cvm/proof
    fold       with --fold: equal branches become one instruction           mrt/fold
    measure    a few samples tell whether its answers are float's           mrt/quality.py

With a given calibration table, `duplicate` takes its channels from it, and `calibrate` and
`refine` have nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cvm.cluster import Cluster
from mrt import stages
from mrt.config import Config
from mrt.config_words import in_words_of_file
from mrt.conversion import Conversion
from mrt.doubts import Remarks
from mrt.job import ConversionJob
from mrt.memory import giving_back
from mrt.progress import Progress
from mrt.quality import RewritingCheck
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationTable
from mrt.tune import TuningTarget

Stage = Callable[[ConversionJob], None]

STAGES: tuple[Stage, ...] = (
    stages.load,
    stages.rewrite,
    stages.duplicate,
    stages.calibrate,
    stages.tune,
    stages.refine,
    stages.quantize,
    stages.prove,
    stages.fold,
    stages.measure,
)

STAGES_OF_TABLE: tuple[Stage, ...] = (
    stages.load,
    stages.rewrite,
    stages.duplicate,
    stages.calibrate,
    stages.refine,
)


def convert(
    config: Config,
    *,
    table: CalibrationTable | None,
    progress: Progress,
    target: TuningTarget | None = None,
    rewriting: RewritingCheck | None = None,
) -> Conversion:
    """Run all stages, without writing a file.

    With a target, search for bits that meet it. Conversions of one model may share the check of its rewriting.
    """
    job = ConversionJob(
        config,
        progress,
        given_table=table,
        target=target,
        rewriting=rewriting or RewritingCheck(),
    )
    _run_stages(job, STAGES)
    assert job.config.model.path is not None
    assert job.loaded is not None and job.before is not None
    assert job.proven is not None and job.source_map is not None
    return Conversion(
        name=job.config.model.path.name,
        proven=job.proven,
        unfolded=job.unfolded,
        model=job.loaded,
        table=job.measured,
        synthetic=job.synthetic and _needs_samples(job),
        before=job.before,
        source_map=job.source_map.of_number,
        config=job.config,
        measured=job.source_map.measured,
        rounded=job.source_map.rounded,
        tuned=job.tuned,
        quality=job.quality,
        remarks=job.remarks,
    )


def make_table(
    config: Config,
    progress: Progress,
    remarks: Remarks | None = None,
    cluster: Cluster | None = None,
) -> CalibrationTable:
    """The stages up to the table: load, rewrite, duplicate, calibrate, refine. What is remarkable is added to `remarks`.

    The workers of a cluster run the float model.
    """
    job = ConversionJob(config, progress, cluster=cluster)
    if remarks is not None:
        job.remarks = remarks
    _run_stages(job, STAGES_OF_TABLE)
    return job.measured


def _run_stages(job: ConversionJob, chosen: Iterable[Stage]) -> None:
    for stage in chosen:
        with giving_back(), in_words_of_file(job.config):
            stage(job)


def _needs_samples(job: ConversionJob) -> bool:
    """Whether any measured range became part of the program."""
    assert job.source_map is not None
    return not has_file_grids(job.model) or bool(job.source_map.measured)

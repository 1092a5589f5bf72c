"""`mrt calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from mrt.commands.named_files import check_files
from mrt.commands.options import (
    DATA_OPTIONS,
    MODEL_OPTIONS,
    PATH,
    examples,
    shared_options,
)
from mrt.commands.shared import (
    print_notes,
    print_warnings,
    progress_bars,
    read_settings,
)
from mrt.errors import BadOption

if TYPE_CHECKING:
    from mrt.doubts import Remarks
    from mrt.table.table import CalibrationTable


@click.command(
    short_help="Measure the range of every value on samples.",
    epilog=examples(
        "mrt calibrate model.onnx --data images/ --preset imagenet -o table.json",
        "mrt convert model.onnx --table table.json",
    ),
)
@shared_options(*MODEL_OPTIONS, *DATA_OPTIONS, "held_back", "observer")
@click.option(
    "--bits",
    "activation_bits",
    type=int,
    metavar="B",
    help="Activation precision that `entropy` and `mse` fit to, 2..8 or 16 (default: 8).",
)
@click.option(
    "--probe",
    "probe_path",
    type=PATH,
    metavar="PROBE.cvm",
    help="With --extremes, in place of data: the program of `mrt probe` that gathered them.",
)
@click.option(
    "--extremes",
    "extremes_path",
    type=PATH,
    metavar="E.npz",
    help="What a probe gathered on samples that nobody may see: their table has the observer minmax, and no refinement.",
)
@shared_options("refine", "extra_products", "input_dtype")
@shared_options("shape", "value", "state", "config", "cluster")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="TABLE.json",
    help="Where to write the table.",
)
@JSON
def calibrate(
    model: Path | None,
    output: Path,
    cluster: str | None,
    as_json: bool,
    probe_path: Path | None,
    extremes_path: Path | None,
    **options: Any,
) -> None:
    """Measure the range of every value of MODEL on samples, and write a calibration table.

    The table and the model decide the program: the same two give the same bytes on every machine.
    """
    check_files(model, options)
    if probe_path is not None or extremes_path is not None:
        _require_no_samples({**options, "cluster": cluster})
        _of_extremes(
            model, output, probe_path, extremes_path, options, as_json=as_json
        )
        return
    from cvm.cluster import connected
    from mrt import pipeline, project
    from mrt.doubts import Remarks

    settings = read_settings(model, options)
    if settings.calibration_data.path is None:
        raise BadOption(
            "no data is given: --data, or a --config whose [calibration] names some"
        )
    project.check_destination(
        output, ".json", [*settings.files, options["config"]]
    )
    remarks = Remarks()
    with connected(cluster) as workers, progress_bars() as progress:
        table = pipeline.make_table(settings, progress, remarks, workers)
    table.save(output)
    _print_table(output, table, remarks, as_json=as_json)


OF_SAMPLES = (
    "data",
    "observer",
    "refine",
    "extra_products",
    "activation_bits",
    "samples",
    "held_back",
    "cluster",
)
"""What `mrt calibrate` does with samples."""


def _require_no_samples(options: dict[str, Any]) -> None:
    """Refuse options of how samples are measured, beside a probe's extremes."""
    for name in OF_SAMPLES:
        if options.get(name) is not None:
            flag = "bits" if name == "activation_bits" else name
            flag = flag.replace("_", "-")
            raise BadOption(
                "--extremes stand in the place of samples, with the observer minmax and no refinement: "
                f"leave --{flag} away"
            )


def _of_extremes(
    model: Path | None,
    output: Path,
    probe: Path | None,
    extremes: Path | None,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Write the table of what a probe gathered."""
    if probe is None or extremes is None:
        raise BadOption("--probe and --extremes belong together: give both")
    from mrt import project
    from mrt.doubts import Remarks
    from mrt.probe.table import table_from

    settings = read_settings(model, options)
    sources = [*settings.files, options["config"], probe, extremes]
    project.check_destination(output, ".json", sources)
    with progress_bars() as progress:
        table = table_from(settings, probe, extremes, progress)
    table.save(output)
    _print_table(output, table, Remarks(), as_json=as_json)


def _print_table(
    output: Path, table: CalibrationTable, remarks: Remarks, *, as_json: bool
) -> None:
    """Print what was written, and the remarks on it."""
    print_notes(remarks.notes)
    print_warnings(remarks.warnings)
    ranges, samples = len(table.ranges), table.samples
    if as_json:
        print_json(
            {
                "format": "mrt-calibrate-1",
                "written": str(output),
                "ranges": ranges,
                "samples": samples,
                "notes": list(remarks.notes),
                "warnings": list(remarks.warnings),
            }
        )
    else:
        many = "" if samples == 1 else "s"
        print_lines(
            [f"wrote {output}: {ranges} ranges from {samples} sample{many}"]
        )

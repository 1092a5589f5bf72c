"""`mrt convert` and `mrt calibrate`."""

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
    check_table_options,
    declared_options,
    examples,
    shared_options,
    take_target,
    tuning_options,
)
from mrt.commands.shared import (
    print_notes,
    print_warnings,
    progress_bars,
    read_settings,
)
from mrt.errors import BadOption, GateMissed
from mrt.quantize.options import QuantizeOptions

if TYPE_CHECKING:
    from mrt.doubts import Remarks
    from mrt.table.table import CalibrationTable


NOISE = """\
mrt: warning: no --data was given, so the ranges were measured on synthetic noise, not on your data. The program runs and is
     proven, but expect it to lose accuracy, maybe all of it. Give --data with about 100 real samples."""


@click.command(
    short_help="Turn a model into a proven integer program.",
    epilog=examples(
        "mrt convert model-symbol.json --bits 8 --data calibration.npz",
        "mrt convert model.onnx --data images/ --preset imagenet --samples 100 -o model.cvm",
        "mrt convert model.onnx --data calibration.npz --bits auto",
    ),
)
@shared_options(*MODEL_OPTIONS, *DATA_OPTIONS, "held_back")
@click.option(
    "--table",
    "table_path",
    type=PATH,
    metavar="T",
    help="A calibration table by `mrt calibrate`, instead of data.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["fhe"]),
    help="fhe: options for encrypted inputs, where others are not given: 3 bits of weights and 4 of values, --scales shift, "
    "--sum-bits 6. What does not fit is listed.",
)
@click.option(
    "--bits",
    metavar="B",
    help="Sets both of the next two (default: auto). auto: 8, and more where 8 are not good: what helps is measured, and taken.",
)
@declared_options(QuantizeOptions)
@shared_options("observer", "refine", "input_dtype")
@shared_options("shape", "value", "state", "config")
@tuning_options
@click.option(
    "--require",
    "gates",
    multiple=True,
    metavar="KEY=X",
    help="Write nothing and exit with 1 if the program is below X on a few of the samples: snr=20 (dB, worst output), "
    "agreement=0.95; may be given again.",
)
@click.option(
    "--report",
    "report_path",
    type=PATH,
    metavar="F",
    help="Also write the outcome of every operator: .json, .txt.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Of a model that is quantized already, list where onnxruntime rounds another way.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="OUT.cvm",
    help="Default: the model's name with .cvm, beside it.",
)
@JSON
def convert(
    model: Path | None,
    table_path: Path | None,
    report_path: Path | None,
    config_path: Path | None,
    output: Path | None,
    gates: tuple[str, ...],
    explain: bool,
    purpose: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert MODEL (.onnx, or MXNet symbol .json) to a proven integer program.

    Parameters of an MXNet model are found beside its JSON. With no data, it is calibrated on noise, which costs accuracy.
    With data, the program is compared with float on a few samples: good, look at it, or useless.
    """
    from mrt.purposes import fitting_line, with_purpose

    target = take_target(options)
    options = with_purpose(purpose, options)
    check_table_options(table_path, options, tuning=target is not None)
    check_files(model, {**options, "table_path": table_path})
    from cvm.file.disk import text_writer, write_all
    from mrt import automatic_bits, pipeline, project
    from mrt.advice import flags_of
    from mrt.evaluate.gate import parse_gate
    from mrt.report import writer_for
    from mrt.settings import written_settings
    from mrt.table.table import CalibrationTable
    from mrt.tune.report import outcome_lines

    deciding = {"table": table_path, "target": target, "for": purpose}
    is_asked = options["bits"] == automatic_bits.AUTO
    chooses_bits = automatic_bits.are_chosen(options, **deciding)
    limits = [parse_gate(gate) for gate in gates]
    settings = read_settings(model, options)
    assert settings.model.path is not None
    if is_asked:
        automatic_bits.check(settings)
    if limits and settings.calibration_data.path is None:
        raise BadOption(
            "--require needs samples to measure on: --data, or a --config whose [calibration] names some"
        )
    destination = output or project.default_output(settings.model.path)
    write_report = None if report_path is None else writer_for(report_path)
    sources = [settings.model.path, settings.model.params, table_path]
    extras = [path for path in (report_path, config_path) if path is not None]
    project.check_destination(destination, sources, *extras)
    table = (
        CalibrationTable.load(table_path) if table_path is not None else None
    )
    with progress_bars() as progress:
        if chooses_bits:
            result = automatic_bits.convert(settings, progress=progress)
        else:
            result = pipeline.convert(
                settings, table=table, progress=progress, target=target
            )
    if misses := result.quality.misses(limits):
        print_warnings(result.remarks.warnings)
        if result.chosen:
            misses.append(f"{flags_of(result.chosen)} was chosen already")
        raise GateMissed(f"{'; '.join(misses)}; nothing was written")
    write_all({destination: result.write})
    summary = result.summary().items()
    lines = [f"wrote {destination}", *(f"  {k:<14} {v}" for k, v in summary)]
    if result.tuned is not None:
        lines += outcome_lines(result.tuned)
    if config_path is not None:
        found = written_settings(
            options["config"],
            result.config,
            config_path.parent,
            with_table=table is not None,
        )
        write_all({config_path: text_writer(found)})
        lines.append(f"wrote {config_path}")
    report = result.report(destination)
    lines += report.summary()
    if report_path is not None and write_report is not None:
        write_all({report_path: text_writer(write_report(report))})
        lines.append(f"wrote {report_path}")
    if explain:
        lines += result.explanation()
    if purpose == "fhe":
        lines.append(fitting_line(result.proven))
    if as_json:
        facts = {"written": str(destination), **result.to_json()}
        print_json({"format": "mrt-convert-1", **facts})
    else:
        print_lines(lines)
    print_notes([*result.model.notes, *result.remarks.notes])
    print_warnings(result.remarks.warnings)
    if result.synthetic:
        click.secho(NOISE, err=True, fg="yellow")


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
@shared_options("refine", "input_dtype")
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
        output, [settings.model.path, settings.model.params]
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
    "activation_bits",
    "samples",
    "held_back",
    "cluster",
)
"""What `mrt calibrate` does with samples."""


def _require_no_samples(options: dict[str, Any]) -> None:
    """Refuse what says how samples are measured, beside a probe's extremes."""
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
    sources = [settings.model.path, settings.model.params, probe, extremes]
    project.check_destination(output, sources)
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
        print_lines([f"wrote {output}: {ranges} ranges from {samples} samples"])

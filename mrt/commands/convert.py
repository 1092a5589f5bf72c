"""`mrt convert`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from cvm.file.suffixes import require_suffix
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
from mrt.quantize.options import AUTO, QuantizeOptions

if TYPE_CHECKING:
    from mrt.config import Config
    from mrt.conversion import Conversion
    from mrt.evaluate.gate import Gate


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
    help="Sets both of the next two (default: auto). auto: 8, and more where 8 are not good: what helps is measured, and taken; "
    "in four more conversions at most, from cheap to dear.",
)
@declared_options(QuantizeOptions)
@shared_options("observer", "refine", "extra_products", "input_dtype")
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
    from mrt import automatic_bits, pipeline
    from mrt.evaluate.gate import parse_gate
    from mrt.memory import set_modules_aside
    from mrt.table.table import CalibrationTable

    set_modules_aside()
    deciding = {"table": table_path, "target": target, "for": purpose}
    is_asked = options["bits"] == AUTO
    is_free = automatic_bits.take_auto(options, **deciding)
    limits = [parse_gate(gate) for gate in gates]
    settings = read_settings(model, options)
    chooses_bits = automatic_bits.chooses_bits(
        settings, is_asked=is_asked, is_free=is_free, **deciding
    )
    if limits and settings.calibration_data.path is None:
        raise BadOption(
            "--require needs samples to measure on: --data, or a --config whose [calibration] names some"
        )
    sources = [*settings.files, table_path]
    if options["config"] != config_path:  # that may be written anew
        sources.append(options["config"])
    files = _files(
        settings, sources, output, report_path, config_path, table_path
    )
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
    _require(result, limits)
    lines = _write(result, files, options["config"])
    if explain:
        lines += result.explanation()
    if purpose == "fhe":
        lines.append(fitting_line(result.proven))
    if as_json:
        facts = {"written": str(files.program), **result.to_json()}
        print_json({"format": "mrt-convert-1", **facts})
    else:
        print_lines(lines)
    print_notes([*result.model.notes, *result.remarks.notes])
    print_warnings(result.warnings)


@dataclass(frozen=True)
class _Files:
    """Where a conversion's results go, and the table that it starts from, if any."""

    program: Path
    report: Path | None
    config: Path | None
    table: Path | None


def _files(
    settings: Config,
    sources: list[Path | None],
    program: Path | None,
    report: Path | None,
    config: Path | None,
    table: Path | None,
) -> _Files:
    """Check where the results go, before anything is computed."""
    from mrt import project
    from mrt.report import writer_for

    assert settings.model.path is not None
    if report is not None:
        writer_for(report)
    program = program or project.default_output(settings.model.path)
    others = [path for path in (report, config) if path is not None]
    project.check_program_destination(program, sources, *others)
    if config is not None:
        require_suffix(config, ".toml")
    return _Files(program, report, config, table)


def _require(result: Conversion, limits: Sequence[Gate]) -> None:
    """Raise GateMissed if the program is below a limit."""
    from mrt.advice import flags_of

    if misses := result.quality.misses(limits):
        print_warnings(result.warnings)
        if result.chosen:
            misses.append(f"{flags_of(result.chosen)} was chosen already")
        raise GateMissed(f"{'; '.join(misses)}; nothing was written")


def _write(
    result: Conversion, files: _Files, read_config: Path | None
) -> list[str]:
    """Write the program, and the config and the report if asked; return the lines to print."""
    from cvm.file.disk import text_writer, write_all
    from mrt.report import writer_for
    from mrt.settings import written_settings
    from mrt.tune.report import outcome_lines

    write_all({files.program: result.write})
    summary = result.summary().items()
    lines = [f"wrote {files.program}", *(f"  {k:<14} {v}" for k, v in summary)]
    if result.tuned is not None:
        lines += outcome_lines(result.tuned)
    if files.config is not None:
        config = written_settings(
            read_config,
            result.config,
            files.config.parent,
            with_table=files.table is not None,
        )
        write_all({files.config: text_writer(config)})
        lines.append(f"wrote {files.config}")
    report = result.report(files.program)
    lines += report.summary()
    if files.report is not None:
        text = writer_for(files.report)(report)
        write_all({files.report: text_writer(text)})
        lines.append(f"wrote {files.report}")
    return lines

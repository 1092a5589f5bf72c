"""`mrt evaluate` and `mrt compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mrt.commands.options import (
    DATA_OPTIONS,
    MODEL_OPTIONS,
    PATH,
    examples,
    shared_options,
)
from mrt.commands.shared import (
    model_and_program,
    print_notes,
    print_warnings,
    progress_bars,
    read_settings,
    warn_of_another_model,
)
from mrt.errors import GateMissed

if TYPE_CHECKING:
    from mrt.evaluate import Report


@click.command(
    short_help="Compare a program with its float model.",
    epilog=examples(
        "mrt evaluate model.onnx model.cvm --data test.npz",
        "mrt evaluate --config model.toml model.cvm --json",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(*MODEL_OPTIONS[1:], *DATA_OPTIONS, "shape", "value", "config")
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Threads for the integer side (default: 1).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--fail-below",
    "gates",
    multiple=True,
    metavar="KEY=X",
    help="Exit with 1 if this figure of --json is below X, e.g. agreement=0.97; may be given again.",
)
def evaluate(
    model: Path | None,
    program: Path | None,
    threads: int,
    as_json: bool,
    gates: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare MODEL in float with PROGRAM (.cvm) in integers on samples: accuracy, agreement, signal to noise."""
    import cvm
    from mrt import project
    from mrt.doubts import of_preparation, of_report
    from mrt.evaluate import evaluate as compare_outputs
    from mrt.evaluate.gate import parse_gate
    from mrt.pictures import config_for

    model, program = model_and_program(
        model, program, options, "mrt evaluate MODEL P.cvm --data D"
    )
    limits = [parse_gate(gate) for gate in gates]
    executable = cvm.load(program)
    settings = config_for(
        executable.program,
        read_settings(model, {**options, "evaluation": True}),
    )
    loaded = project.load_to_run(settings)
    warn_of_another_model(program, executable, loaded.sha256)
    samples = project.open_data(
        loaded.model, settings, settings.evaluation_data
    )
    doubts = of_preparation(loaded.model, settings, settings.evaluation_data)
    with progress_bars() as progress:
        report = compare_outputs(
            loaded.model,
            executable,
            samples,
            progress,
            threads=threads,
        )
    click.echo(
        json.dumps(report.to_json(), indent=2)
        if as_json
        else _report_text(report)
    )
    print_notes(samples.notes)
    print_warnings([*doubts, *of_report(report, loaded.model, samples.source)])
    misses = [
        miss for gate in limits if (miss := gate.missed(report)) is not None
    ]
    if misses:
        raise GateMissed("; ".join(misses))


@click.command(
    short_help="Say which layers lose most, value by value.",
    epilog=examples(
        "mrt compare model.onnx model.cvm --data test.npz --samples 20",
        "mrt compare model.onnx model.cvm --data images/ --preset imagenet --html layers.html",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(*MODEL_OPTIONS[1:], *DATA_OPTIONS, "shape", "value", "config")
@click.option(
    "--worst",
    type=click.IntRange(1),
    default=20,
    metavar="N",
    help="Rows of the table (default: 20).",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print all layers as one JSON object.",
)
@click.option(
    "--html",
    type=PATH,
    metavar="F.html",
    help="Also write a page with plots that needs nothing else.",
)
def compare(
    model: Path | None,
    program: Path | None,
    worst: int,
    as_json: bool,
    html: Path | None,
    **options: Any,
) -> None:
    """Compare every integer value of PROGRAM (.cvm) with the value of MODEL that it stands for, worst first.

    SNR is the power of the float value over that of the difference: 6 dB are one bit. Clipped is the share of float
    numbers that the integers cannot reach.
    """
    import cvm
    from cvm.file.disk import text_writer, write_all
    from mrt import project
    from mrt.evaluate import layers_report
    from mrt.evaluate.layers import compare_layers
    from mrt.evaluate.page import page
    from mrt.pictures import config_for

    model, program = model_and_program(
        model, program, options, "mrt compare MODEL P.cvm --data D"
    )
    settings = read_settings(model, {**options, "evaluation": True})
    if html is not None:
        project.check_destination(
            html, [settings.model.path, settings.model.params, program]
        )
    executable = cvm.load(program)
    settings = config_for(executable.program, settings)
    loaded = project.rewritten_for(executable.program, settings)
    warn_of_another_model(program, executable, loaded.sha256)
    samples = project.open_data(
        loaded.model, settings, settings.evaluation_data
    )
    with progress_bars() as progress:
        layers = compare_layers(
            loaded.model,
            executable,
            samples,
            progress,
        )
    if as_json:
        click.echo(
            json.dumps(layers_report.to_json(layers, len(samples)), indent=2)
        )
    else:
        click.echo(layers_report.table(layers, worst))
    print_notes(samples.notes)
    if html is not None:
        write_all({html: text_writer(page(layers, program.name, len(samples)))})
        click.echo(f"wrote {html}", err=as_json)


def _report_text(report: Report) -> str:
    def percent(fraction: float | None) -> str:
        return "-" if fraction is None else f"{100 * fraction:.2f} %"

    rows = [
        ("", "float", "integer"),
        (
            "top-1",
            percent(report.of_float.top1),
            percent(report.of_integer.top1),
        ),
        (
            "top-5",
            percent(report.of_float.top5),
            percent(report.of_integer.top5),
        ),
        (
            "samples/s",
            f"{report.of_float.samples_per_second:.1f}",
            f"{report.of_integer.samples_per_second:.1f}",
        ),
    ]
    lines = [
        f"{report.samples} samples",
        *(f"  {name:<10} {left:>10} {right:>10}" for name, left, right in rows),
    ]
    lines.append(f"  same top-1 {percent(report.agreement):>10}")
    for name, decibels in report.snr_db.items():
        lines.append(
            f"  signal to noise of '{name}': {'no difference' if decibels is None else f'{decibels:.1f} dB'}"
        )
    return "\n".join(lines)

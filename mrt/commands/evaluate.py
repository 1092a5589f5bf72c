"""`mrt evaluate` and `mrt compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from mrt.commands.options import (
    DATA_OPTIONS,
    EVALUATION_OPTIONS,
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
from mrt.errors import BadOption, GateMissed


@click.command(
    short_help="Compare a program with its float model.",
    epilog=examples(
        "mrt evaluate model.onnx model.cvm --data test.npz",
        "mrt evaluate --config model.toml model.cvm --json",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(
    *MODEL_OPTIONS[1:],
    *DATA_OPTIONS,
    *("shape", "value", "config"),
    *EVALUATION_OPTIONS,
    "cluster",
)
@JSON
@click.option(
    "--require",
    "--fail-below",
    "gates",
    multiple=True,
    metavar="KEY=X",
    help="Exit with 1 if this figure of --json is below X, e.g. agreement=0.97, or snr=20 at the worst output; "
    "may be given again.",
)
def evaluate(
    model: Path | None,
    program: Path | None,
    threads: int | None,
    class_output: str | None,
    metric: str | None,
    cluster: str | None,
    as_json: bool,
    gates: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare MODEL in float with PROGRAM (.cvm) in integers on samples: accuracy, agreement, signal to noise.

    Beside each share of the samples stands its 95 % confidence interval.
    """
    model, program = model_and_program(
        model, program, options, "mrt evaluate MODEL P.cvm --data D"
    )
    import cvm
    from cvm.cluster import connected
    from mrt import project
    from mrt.doubts import evaluation_warnings, preparation_warnings
    from mrt.evaluate import evaluate as compare_outputs
    from mrt.evaluate.evaluation_text import report_lines
    from mrt.evaluate.gate import parse_gate
    from mrt.evaluate.metric import load_metric
    from mrt.evaluate.verdict import notes_on_change
    from mrt.pictures import config_for

    limits = [parse_gate(gate) for gate in gates]
    measure = load_metric(metric) if metric is not None else None
    executable = cvm.load(program)
    settings = config_for(
        executable.program,
        read_settings(model, {**options, "evaluation": True}),
    )
    loaded = project.load_to_run(settings)
    is_stranger = warn_of_another_model(program, executable, loaded.sha256)
    samples = project.open_data(
        loaded.model, settings, settings.evaluation_data
    )
    doubts = preparation_warnings(
        loaded.model, settings, settings.evaluation_data
    )
    with connected(cluster) as workers, progress_bars() as progress:
        report = compare_outputs(
            loaded.model,
            executable,
            samples,
            progress,
            threads=threads,
            class_output=class_output,
            metric=measure,
            cluster=workers,
        )
    if as_json:
        print_json(report.to_json())
    else:
        print_lines(report_lines(report))
    print_notes([*samples.notes, *notes_on_change(report)])
    print_warnings(
        [*doubts, *evaluation_warnings(report, loaded.model, samples.source)]
    )
    misses = [
        miss for gate in limits if (miss := gate.missed(report)) is not None
    ]
    if limits and is_stranger:  # its figures are about two models at once
        misses.append(f"{program} was made from another model")
    if misses:
        raise GateMissed("; ".join(misses))


def _refuse_html(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> None:
    """Refuse the option, and name the command that writes the page now."""
    if value is not None:
        raise BadOption(
            f"--html {value}: mrt report MODEL P.cvm --data D -o {value} writes a page, with the layers and more"
        )


@click.command(
    short_help="Compare value by value: which are farthest from float.",
    epilog=examples(
        "mrt compare model.onnx model.cvm --data test.npz --samples 20",
        "mrt compare model.onnx model.cvm --data images/ --preset imagenet --worst 5",
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
@click.option("--html", hidden=True, callback=_refuse_html, expose_value=False)
def compare(
    model: Path | None,
    program: Path | None,
    worst: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare every integer value of PROGRAM (.cvm) with the value of MODEL that it stands for, worst first.

    SNR is the power of the float value over that of the difference: 6 dB are one bit. Clipped is the share of float
    numbers that the integers cannot reach. Noise of all layers before counts in: mrt report shows what is made in each.
    """
    model, program = model_and_program(
        model, program, options, "mrt compare MODEL P.cvm --data D"
    )
    import cvm
    from mrt import project
    from mrt.evaluate import layers_report
    from mrt.evaluate.layers import compare_layers
    from mrt.pictures import config_for

    settings = read_settings(model, {**options, "evaluation": True})
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
        print_json(layers_report.to_json(layers, len(samples)))
    else:
        print_lines(layers_report.table(layers, worst))
    print_notes(samples.notes)

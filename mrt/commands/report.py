"""`mrt report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cvm.commands.output import print_lines
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


@click.command(
    short_help="Write a page about a program: accuracy, network, layers.",
    epilog=examples(
        "mrt report model.onnx model.cvm --data test.npz -o report.html",
        "mrt report --config model.toml model.cvm",
    ),
)
@shared_options("model")
@click.argument("program", type=PATH, required=False)
@shared_options(
    *MODEL_OPTIONS[1:],
    *DATA_OPTIONS,
    *("shape", "value", "config"),
    *EVALUATION_OPTIONS,
)
@click.option(
    "--layer-samples",
    type=click.IntRange(1),
    default=32,
    metavar="N",
    help="Compare single layers on at most N of the samples, at equal distances (default: 32).",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="F.html",
    help="Default: the program's name with .html, beside it.",
)
def report(
    model: Path | None,
    program: Path | None,
    output: Path | None,
    layer_samples: int,
    threads: int | None,
    class_output: str | None,
    metric: str | None,
    **options: Any,
) -> None:
    """Write a page on PROGRAM (.cvm) beside MODEL: a verdict, accuracy, the network, the worst layers and what mends them.

    The page is one file that loads nothing, and says what was left out of it.
    """
    model, program = model_and_program(
        model, program, options, "mrt report MODEL P.cvm --data D"
    )
    import cvm
    from cvm.file.disk import text_writer, write_all
    from mrt import page, project
    from mrt.doubts import evaluation_warnings, preparation_warnings
    from mrt.evaluate.metric import load_metric
    from mrt.pictures import config_for

    measure = load_metric(metric) if metric is not None else None
    settings = read_settings(model, {**options, "evaluation": True})
    destination = output or program.with_suffix(".html")
    sources = [*settings.files, options["config"], program]
    project.check_destination(destination, ".html", sources)
    executable = cvm.load(program)
    settings = config_for(executable.program, settings)
    loaded = project.load_to_run(settings)
    is_stranger = warn_of_another_model(program, executable, loaded.sha256)
    rewritten = project.rewritten_for(executable.program, settings).model
    data = settings.evaluation_data
    samples = project.open_data(loaded.model, settings, data)
    fewer = replace(data, samples=min(layer_samples, len(samples)))
    assert settings.model.path is not None
    subject = page.ReportSubject(
        settings.model.path.name,
        program.name,
        loaded.model,
        rewritten,
        executable,
        project.class_names(executable.program, settings),
        project.preparation_of(loaded.model, settings),
    )
    with progress_bars() as progress:
        facts = page.gather(
            subject,
            samples,
            project.open_data(rewritten, settings, fewer),
            progress,
            threads=threads,
            class_output=class_output,
            metric=measure,
        )
    warnings = [
        *preparation_warnings(loaded.model, settings, data),
        *evaluation_warnings(facts.report, loaded.model, samples.source),
    ]
    remarks = [*warnings, *samples.notes]
    if is_stranger:
        remarks.insert(0, f"{program.name} was made from another model.")
    text = page.page(facts, remarks)
    write_all({destination: text_writer(text)})
    print_lines([facts.verdict.sentence, f"wrote {destination}"])
    print_notes(samples.notes)
    print_warnings(warnings)

"""`mrt show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from mrt.commands.failures import NO
from mrt.commands.named_files import check_files
from mrt.commands.options import MODEL_OPTIONS, examples, shared_options
from mrt.commands.shared import print_notes, read_settings, settings_with_shapes


@click.command(
    short_help="Look at a model without converting it.",
    epilog=examples(
        "mrt show model.onnx",
        "mrt show model-symbol.json --shape data=1,3,224,224",
    ),
)
@shared_options(*MODEL_OPTIONS, "shapes_from", "shape", "value", "config")
@JSON
@click.pass_context
def show(
    ctx: click.Context,
    /,
    model: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print what MODEL holds: inputs, outputs, parameters, operators, and everything that would be refused.

    Exit code 0 if it can be read and rewritten, which is most of the way; else 1, with each reason. Nothing is
    measured, so that no data is needed.
    """
    check_files(model, options)
    from mrt.overview import overview, overview_lines

    settings = settings_with_shapes(read_settings(model, options), options)
    model_overview = overview(settings)
    if as_json:
        print_json(model_overview.to_json())
    else:
        first, *more = overview_lines(model_overview)
        print_lines([f"{settings.model.path}: {first}", *more])
    print_notes(model_overview.notes)
    if model_overview.problems:
        ctx.exit(NO)

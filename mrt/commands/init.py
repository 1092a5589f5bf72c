"""`mrt init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from mrt.commands.named_files import check_files
from mrt.commands.options import MODEL_OPTIONS, PATH, examples, shared_options
from mrt.commands.shared import read_settings
from mrt.errors import BadOption


@click.command(
    short_help="Write the first config of a model and its data.",
    epilog=examples(
        "mrt init model.onnx images/",
        "mrt init model-symbol.json calibration.npz -o model.toml",
        "mrt init model.onnx --data images/",
    ),
)
@shared_options("model")
@click.argument("data", type=PATH, required=False)
@click.option(
    "--data",
    "as_option",
    type=PATH,
    metavar="DATA",
    help="DATA as other commands take it.",
)
@shared_options(*MODEL_OPTIONS[1:], "shape", "value")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="C.toml",
    help="Default: the model's name with .toml, beside it. A file that exists is not replaced.",
)
@JSON
def init(
    model: Path | None,
    data: Path | None,
    as_option: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write a config for MODEL with what is found in it and in DATA, samples to calibrate on.

    Shapes, arrays and their layout are found by trying what fits. What only a person knows, such as how training
    prepared pictures, is marked in the file with TO BE SAID, and listed.
    """
    data = _only(data, as_option)
    check_files(model, {**options, "data": data})
    from cvm.file.disk import text_writer, write_all
    from mrt import project
    from mrt.calibrate.images import list_pictures
    from mrt.first_config import first_config, open_points

    if data.is_dir():
        list_pictures(data)  # refused, rather than marked, if there are none
    settings = read_settings(model, {**options, "data": data})
    assert settings.model.path is not None
    default = project.default_output(settings.model.path).with_suffix(".toml")
    destination = output or default
    if destination.exists():
        raise BadOption(
            f"{destination}: exists already; name another file with -o"
        )
    project.check_destination(destination, ".toml", settings.files)
    text = first_config(settings, destination)
    write_all({destination: text_writer(text)})
    points = list(open_points(text))
    if as_json:
        print_json(
            {
                "format": "mrt-init-1",
                "written": str(destination),
                "to_be_said": points,
            }
        )
    else:
        lines = (f"  to be said: {point}" for point in points)
        print_lines([f"wrote {destination}", *lines])


def _only(data: Path | None, as_option: Path | None) -> Path:
    """The samples, named by the argument or by --data."""
    given = [path for path in (data, as_option) if path is not None]
    if len(given) != 1:
        problem = (
            "both DATA and --data are given" if given else "no data is given"
        )
        raise BadOption(f"{problem}: mrt init MODEL DATA")
    return given[0]

"""`mrt rewrite`, `mrt export` and `mrt operators`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.options import JSON
from cvm.commands.output import print_json, print_lines
from mrt.commands.named_files import check_files
from mrt.commands.options import MODEL_OPTIONS, PATH, examples, shared_options
from mrt.commands.shared import print_notes, read_settings, settings_with_shapes

if TYPE_CHECKING:
    pass


@click.command(
    short_help="Write the simpler float model that is quantized.",
    epilog=examples(
        "mrt rewrite model-symbol.json --shape data=1,3,224,224 -o simple.onnx",
        "mrt rewrite model.onnx --outputs conv5,pool2 -o inner.onnx",
    ),
)
@shared_options(
    *MODEL_OPTIONS,
    "input_dtype",
    "preset",
    "preparation",
    "shapes_from",
    "shape",
    "value",
    "config",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT.onnx",
    help="Where to write the rewritten model.",
)
@JSON
def rewrite(
    model: Path | None, output: Path, as_json: bool, **options: Any
) -> None:
    """Write MODEL as the simpler float model that is quantized: BatchNorm folded, shapes fixed, few operators.

    It is numerically equal to MODEL. Its value names are those of reports, tables and [layers] in a config.
    """
    check_files(model, options)
    from mrt import project
    from mrt.rewrite import save

    settings = settings_with_shapes(read_settings(model, options), options)
    project.check_destination(
        output, ".onnx", [*settings.files, options["config"]]
    )
    loaded = project.rewritten(settings)
    save(loaded.model, output)
    print_notes(loaded.notes)
    nodes = loaded.model.graph.num_nodes()
    if as_json:
        print_json(
            {
                "format": "mrt-rewrite-1",
                "written": str(output),
                "nodes": nodes,
                "notes": list(loaded.notes),
            }
        )
    else:
        print_lines([f"wrote {output}: {nodes} nodes"])


@click.command(
    short_help="Write an MXNet model as plain ONNX.",
    epilog=examples(
        "mrt export model-symbol.json --shape data=1,3,224,224 -o model.onnx",
        "mrt export model-symbol.json --data calibration.npz -o model.onnx",
        "mrt export model-symbol.json --data test.npz --params model-0012.params --opset 13 -o model.onnx",
        "mrt export ssd-symbol.json --data test.npz --outputs cls_preds,loc_preds -o headless.onnx",
    ),
)
@shared_options(*MODEL_OPTIONS, "shapes_from", "shape", "value", "config")
@click.option(
    "--opset",
    type=int,
    metavar="N",
    help="The ONNX operator set to write, 11 to 26 (default: 17).",
)
@click.option(
    "--dynamic-batch/--fixed-batch",
    "any_batch",
    default=None,
    help="Take any number of samples, or as many as --shape says (default: any, if the model allows it).",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT.onnx",
    help="Where to write the model.",
)
@JSON
def export(
    model: Path | None,
    output: Path,
    opset: int | None,
    any_batch: bool | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write MODEL as a float ONNX model that any runtime reads: the way off MXNet, without MXNet.

    Nothing is folded or quantized; names, parameters and answers stay. What is written was checked by onnx.checker, and
    run in onnxruntime against the model as read: at its batch, and several samples together against each alone.
    """
    check_files(model, options)
    from mrt import project
    from mrt.export import DEFAULT_OPSET

    settings = settings_with_shapes(read_settings(model, options), options)
    opset = DEFAULT_OPSET if opset is None else opset
    project.check_destination(
        output, ".onnx", [*settings.files, options["config"]]
    )
    written = project.write_onnx(
        settings, output, opset=opset, any_batch=any_batch
    )
    if as_json:
        print_json(
            {
                "format": "mrt-export-1",
                "written": list(written.files),
                "nodes": written.nodes,
                "opset": opset,
                "fixed_because": written.fixed_because or None,
                "notes": list(written.notes),
            }
        )
    else:
        batch = (
            f"fixed batch ({written.fixed_because})"
            if written.fixed_because
            else "any batch"
        )
        paths = [str(output.parent / name) for name in written.files]
        files, nodes = " and ".join(paths), written.nodes
        print_lines([f"wrote {files}: {nodes} nodes, opset {opset}, {batch}"])
    print_notes(written.notes)


@click.command()
@click.option(
    "--frontend",
    type=click.Choice(["onnx", "mxnet"]),
    required=True,
    help="Whose operators.",
)
@JSON
def operators(frontend: str, as_json: bool) -> None:
    """List the operators that can be read, one a line."""
    from mrt.frontend import operators as names

    listed = names("onnx" if frontend == "onnx" else "mxnet")
    if as_json:
        print_json(
            {
                "format": "mrt-operators-1",
                "frontend": frontend,
                "operators": list(listed),
            }
        )
    else:
        print_lines(listed)

"""Notes which outputs have a row for each box that a NonMaxSuppression keeps: a program of fixed shapes has more."""

from __future__ import annotations

import onnx_ir as ir

from mrt.frontend.onnx.read.read import add_note


def note_rows_of_boxes(model: ir.Model) -> None:
    """Note the outputs whose number of rows is known only when the model has run."""
    if all(node.op_type != "NonMaxSuppression" for node in model.graph):
        return
    names = [
        f"'{value.name}'"
        for value in model.graph.outputs
        if value.shape is not None and not value.shape.is_static()
    ]
    if names:
        add_note(
            model,
            f"{', '.join(names)}: the model gives a row for each box that NonMaxSuppression keeps, and a program always the most "
            "rows that it can give: first the model's, then those of no box (index -1, by which a lookup gives 0)",
        )

"""The column of conformance vectors: what is recorded for it is what the vectors say, and every vector is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.conformance.test_vectors import load_vectors
from tests.determinism import compare, records, vectors
from tests.determinism.programs import all_items
from tests.support import golden


def test_what_is_recorded_for_a_vector_is_what_it_says():
    known, count = records.load(), 0
    for name in vectors.instructions():
        said = vectors.literals(name)
        stated = {
            one: golden.digest(array).hex() for one, array in said.items()
        }
        assert known[f"vectors/{name}"].outputs == stated, name
        count += len(stated)
    assert count == sum("outputs" in vector for _, vector in load_vectors())


def test_one_wrong_integer_is_named_by_its_vector_and_its_instruction():
    (item,) = all_items("vectors/add")
    known = records.load()[item.name]

    def wrong(program, sample):
        values = vectors.literals("add")
        value = values["rank 0"] ^ np.int32(1)
        names = [port.name for port in program.outputs]
        return dict(
            zip(names, (values | {"rank 0": value}).values(), strict=True)
        )

    problem = compare.exported_problem("ours", wrong, item, known)
    place = [port.name for port in item.program.outputs].index("rank 0")
    number = item.program.first_instruction + place
    said = f"instruction {place}, %{number} = add, is the first that differs"
    assert problem == f"ours: {said}"
    other = replace(known, values="0" * len(known.values))
    assert compare.exported_problem("ours", wrong, item, other) != problem

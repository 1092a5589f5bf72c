"""Runs in the environment of mxnet, which has nothing else but numpy: python judge.py CASES ANSWERS FIRST.

CASES holds a case a line. For each from number FIRST on, two lines are appended to ANSWERS: its number before it is
run, and its answer after. Where mxnet takes the process down, the last line is the number of the case that did it.
"""

import json
import os
import sys

os.environ["MXNET_SUBGRAPH_BACKEND"] = (
    "NONE"  # MXNet's own operators, not what a graph compiler makes of several
)
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mxnet
import numpy as np


def main(cases_path, answers_path, first):
    with open(cases_path) as cases, open(answers_path, "a") as answers:
        for number, line in enumerate(cases):
            if number >= first:
                write(answers, {"started": number})
                write(answers, {"number": number, **answer(json.loads(line))})


def write(stream, item):
    stream.write(json.dumps(item) + "\n")
    stream.flush()


def answer(case):
    """Any error of mxnet is an answer, too."""
    try:
        return {"outputs": [to_json(output) for output in run(case)]}
    except Exception as error:
        return {
            "refusal": f"{type(error).__name__}: {error}".split("Stack trace")[
                0
            ].strip()[-500:]
        }


def run(case):
    symbol = mxnet.sym.load_json(json.dumps(case["symbol"]))
    given = {**case["inputs"], **case["parameters"], **case["labels"]}
    arrays = {name: from_json(item) for name, item in given.items()}
    arguments = {name: arrays[name] for name in symbol.list_arguments()}
    states = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    executor = symbol.bind(
        mxnet.cpu(), arguments, aux_states=states, grad_req="null"
    )
    return [output.asnumpy() for output in executor.forward(is_train=False)]


def from_json(item):
    array = np.array(item["data"], item["dtype"]).reshape(item["shape"])
    return mxnet.nd.array(array, dtype=array.dtype)


def to_json(array):
    data = (
        [float(str(number)) for number in array.ravel()]
        if array.dtype == np.float32
        else array.ravel().tolist()
    )
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

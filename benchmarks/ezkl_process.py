"""Run by the Python that has EZKL: python ezkl_process.py FOLDER proves what is in the folder, and prints what that took as JSON.

FOLDER holds model.onnx, x.json (numbers of one sample) and settings.json (scales, and whether to calibrate).
"""

import json
import sys
import time
from pathlib import Path

import ezkl


def main(folder: Path) -> None:
    """Settings, keys, a witness, a proof and its verification."""
    files = (
        "model.onnx",
        "settings",
        "circuit",
        "witness",
        "srs",
        "vk",
        "pk",
        "proof",
        "input",
    )
    names = {name: str(folder / name) for name in files}
    requested = json.loads((folder / "settings.json").read_text())
    x = json.loads((folder / "x.json").read_text())
    (folder / "input").write_text(json.dumps({"input_data": [x]}))
    arguments = ezkl.PyRunArgs()
    arguments.input_visibility = "private"
    arguments.output_visibility = "public"
    arguments.param_visibility = "fixed"
    for name, value in requested.items():
        setattr(
            arguments, name, tuple(value) if isinstance(value, list) else value
        )
    ezkl.gen_settings(
        names["model.onnx"], names["settings"], py_run_args=arguments
    )
    if not requested:
        ezkl.calibrate_settings(
            names["input"], names["model.onnx"], names["settings"], "resources"
        )
    ezkl.compile_circuit(
        names["model.onnx"], names["circuit"], names["settings"]
    )
    ezkl.gen_witness(names["input"], names["circuit"], names["witness"])
    settings = json.loads((folder / "settings").read_text())
    ezkl.gen_srs(names["srs"], settings["run_args"]["logrows"])
    steps = {
        "setup": lambda: ezkl.setup(names["circuit"], names["vk"], names["pk"], srs_path=names["srs"]),
        "prove": lambda: ezkl.prove(names["witness"], names["circuit"], names["pk"], names["proof"], srs_path=names["srs"]),
        "verify": lambda: ezkl.verify(names["proof"], names["settings"], names["vk"], srs_path=names["srs"]),
    }  # fmt: skip
    seconds = {}
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        seconds[name] = time.perf_counter() - start
    outputs = json.loads((folder / "witness").read_text())["outputs"][0]
    scale = 2.0 ** settings["model_output_scales"][0]
    facts = {
        "rows": settings["num_rows"],
        "key": (folder / "pk").stat().st_size,
        "proof": (folder / "proof").stat().st_size,
        "seconds": seconds,
        "outputs": [ezkl.felt_to_int(text) / scale for text in outputs],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Run by the Python that has Concrete-ML: python concrete_ml_process.py FOLDER quantizes, compiles and runs what is in the folder.

FOLDER holds model.onnx, x.npz (arrays calibration and test) and settings.json (bits, how many samples to simulate and
to encrypt). It writes y.npz, the outputs by the way in which they were computed, and prints seconds as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from concrete.ml.torch.compile import compile_onnx_model


def main(folder: Path) -> None:
    """All test samples in clear, some simulated, few encrypted."""
    settings = json.loads((folder / "settings.json").read_text())
    arrays = np.load(folder / "x.npz")
    seconds = {}
    start = time.perf_counter()
    model = compile_onnx_model(
        onnx.load(folder / "model.onnx"),
        arrays["calibration"],
        n_bits=settings["bits"],
    )
    seconds["compile"] = time.perf_counter() - start
    start = time.perf_counter()
    model.fhe_circuit.keygen(force=True)
    seconds["keygen"] = time.perf_counter() - start
    x = arrays["test"]
    outputs = {"clear": model.forward(x, fhe="disable")}
    to_simulate = x[: settings["simulated"]]
    outputs["simulated"] = model.forward(to_simulate, fhe="simulate")
    start = time.perf_counter()
    to_encrypt = x[: settings["encrypted"]]
    outputs["encrypted"] = model.forward(to_encrypt, fhe="execute")
    seconds["run"] = (time.perf_counter() - start) / len(to_encrypt)
    np.savez(folder / "y.npz", **outputs)
    circuit = model.fhe_circuit
    facts = {
        "seconds": seconds,
        "bootstraps": circuit.programmable_bootstrap_count,
        "key_bytes": circuit.size_of_bootstrap_keys
        + circuit.size_of_keyswitch_keys,
        "widest": circuit.graph.maximum_integer_bit_width(),
        "p_error": circuit.p_error,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Trains a last layer among three parties, none of which sees a feature or a label: gradients by jax, run on shares by SPU.

Run it by the Python that has SPU (`make privacy` installs it): it needs numpy, jax and spu, and nothing of this project.

    .venv-spu/bin/python examples/last_layer/train.py features.npz labels.npz last.npz

The features are one array of [N, ...] real numbers, the labels one of N classes. Softmax regression from zeros, all samples at each
step. All parties are threads of this process: docs/privacy.md says how they become real.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import spu.libspu as libspu
import spu.utils.simulation as simulation

STEPS, RATE = 20, 4.0


def loss(weights, features, wanted):
    """The mean cross entropy; the last row of the weights is the bias."""
    scores = features @ weights[:-1] + weights[-1]
    return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(scores), axis=1))


def train(features, wanted):
    weights = jnp.zeros((features.shape[1] + 1, wanted.shape[1]), jnp.float32)
    for _ in range(STEPS):
        weights -= RATE * jax.grad(loss)(weights, features, wanted)
    return weights


def only_array(path):
    with np.load(path, allow_pickle=False) as file:
        (name,) = file.files
        return file[name]


def main(features_path, labels_path, destination):
    features = only_array(features_path)
    features = features.reshape(len(features), -1).astype(np.float32)
    scale = float(np.abs(features).max())  # fixed point likes numbers below 1
    wanted = np.eye(10, dtype=np.float32)[only_array(labels_path)]
    config = libspu.RuntimeConfig(protocol=libspu.ProtocolKind.ABY3, field=libspu.FieldType.FM64)
    parties = simulation.Simulator(3, config)
    secret = simulation.sim_jax(parties, train)(features / scale, wanted)
    found = np.asarray(secret)
    clear = np.asarray(jax.jit(train)(features / scale, wanted))
    np.savez(destination, weights=found[:-1] / scale, bias=found[-1])
    print(f"wrote {destination}; differs from training in clear by at most {np.abs(found - clear).max():.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])

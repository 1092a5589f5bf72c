"""The commands on a Dask cluster: the same bytes for any number of workers, and when workers are lost."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("distributed", reason="Dask is not installed")

from cvm.cli import cli as cvm_cli
from cvm.cluster import connected, connection
from cvm.errors import BadInput, ClusterFailed
from mrt.cli import cli as mrt_cli
from mrt.config import load_config
from mrt.pipeline import make_table
from tests.support.clusters import local_cluster, pids_of

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "lenet_digits28.toml"
TEST = ROOT / "calibration_data" / "digits28" / "test.npz"
SLOW_1, SLOW_2, SLOW_3 = (
    pytest.param(count, marks=pytest.mark.slow) for count in (1, 2, 3)
)
SPEEDS = ("float.samples_per_second", "integer.samples_per_second")


@pytest.fixture(scope="module", params=[SLOW_1, 2, SLOW_3])
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    with local_cluster(request.param) as found:
        yield found


def done(command: Any, *words: object) -> Result:
    result = CliRunner().invoke(command, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what this process alone makes: table, program, receipt, trace, outputs, figures."""
    folder = tmp_path_factory.mktemp("alone")
    done(mrt_cli, "calibrate", "--config", CONFIG, "-o", folder / "t.json")
    words = ("--table", folder / "t.json", "-o", folder / "p.cvm")
    done(mrt_cli, "convert", "--config", CONFIG, *words)
    run(folder, folder)
    figures = evaluated(folder / "p.cvm")
    (folder / "e.json").write_text(json.dumps(figures))
    return folder


def run(program: Path, folder: Path, *more: object) -> None:
    """Run the program on all samples, and write what a run can write."""
    files = (
        *("--receipt", folder / "r.json"),
        *("--trace", folder / "trace.json"),
        *("-o", folder / "o.npz"),
    )
    how = ("--input", TEST, "--real", *files, *more)
    done(cvm_cli, "run", program / "p.cvm", *how)


def evaluated(program: Path, *more: object) -> dict[str, Any]:
    """The figures of a comparison without its speeds, which differ each time."""
    words = ("--config", CONFIG, program, "--json", *more)
    found = json.loads(done(mrt_cli, "evaluate", *words).stdout)
    return {key: value for key, value in found.items() if key not in SPEEDS}


def test_a_table_has_the_same_bytes(cluster, alone, tmp_path):
    where = ("--cluster", cluster.scheduler_address)
    table = tmp_path / "t.json"
    done(mrt_cli, "calibrate", "--config", CONFIG, "-o", table, *where)
    assert table.read_bytes() == (alone / "t.json").read_bytes()
    (layers,) = alone.glob("t.*.npz")
    assert (tmp_path / layers.name).read_bytes() == layers.read_bytes()


def test_receipt_trace_and_outputs_have_the_same_bytes(
    cluster, alone, tmp_path
):
    run(alone, tmp_path, "--cluster", cluster.scheduler_address)
    for name in ("r.json", "trace.json", "o.npz"):
        assert (tmp_path / name).read_bytes() == (alone / name).read_bytes()


def test_a_replay_matches_and_names_what_differs(cluster, alone, tmp_path):
    words = ("--input", TEST, "--real", "--trace", alone / "trace.json")
    where = ("--cluster", cluster.scheduler_address)
    command = ("replay", alone / "p.cvm", alone / "r.json", *words, *where)
    result = done(cvm_cli, *command)
    assert result.stdout.startswith("match: 360 samples, root ")
    other = tmp_path / "r.json"
    receipt = json.loads((alone / "r.json").read_text())
    digests = receipt["samples"][300]["outputs"]
    digests[next(iter(digests))] = "0" * 64
    other.write_text(json.dumps(receipt))
    command = ("replay", alone / "p.cvm", other, *words[:3], *where)
    result = CliRunner().invoke(cvm_cli, list(map(str, command)))
    assert result.exit_code == 1
    assert "no match: sample 300, output" in result.stdout


def test_an_evaluation_has_the_same_figures(cluster, alone):
    where = ("--cluster", cluster.scheduler_address)
    expected = json.loads((alone / "e.json").read_text())
    assert evaluated(alone / "p.cvm", *where) == expected


@pytest.mark.parametrize("lost", [1, SLOW_2])
def test_workers_that_are_killed_in_the_middle_change_nothing(
    lost: int, alone: Path, tmp_path: Path
) -> None:
    """Of two workers one or both, after the first block of 32; Dask starts others in their place."""
    killed: list[int] = []

    with local_cluster(2) as cluster:

        def kill(what: str, done: int, total: int) -> None:
            if what == "calibrating" and not killed and done < total:
                killed.extend(pids_of(cluster)[:lost])
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        with connected(cluster.scheduler_address) as workers:
            table = make_table(load_config(CONFIG), kill, None, workers)
        assert len(killed) == lost
        assert not set(killed) & set(pids_of(cluster))
    table.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes() == (alone / "t.json").read_bytes()


@pytest.mark.parametrize("address", ["4", "localhost:8786", "inproc://1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with (
        pytest.raises(BadInput, match="expected the address of a Dask"),
        connected(address),
    ):
        pass


def test_without_dask_the_extra_is_named(monkeypatch, alone):
    monkeypatch.setitem(sys.modules, "dask", None)
    words = ("evaluate", "--config", CONFIG, alone / "p.cvm")
    where = ("--cluster", "tcp://127.0.0.1:1")
    result = CliRunner().invoke(mrt_cli, list(map(str, (*words, *where))))
    assert result.exit_code == 2
    assert result.stderr == (
        "mrt: cluster tcp://127.0.0.1:1: Dask is not installed; "
        "to get it, pip install 'mrt-cvm[cluster]'\n"
    )


def test_an_address_where_nobody_answers_is_named(monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE", 1)
    with (
        pytest.raises(
            ClusterFailed,
            match="no Dask scheduler answers there; start one with: dask scheduler",
        ),
        connected("tcp://127.0.0.1:1"),
    ):
        pass


def test_a_cluster_without_workers_is_named(monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE", 1)
    with local_cluster(0) as cluster:
        address = cluster.scheduler_address
        expected = f"it has no workers; start some with: dask worker {address}"
        with pytest.raises(ClusterFailed, match=expected), connected(address):
            pass


def test_a_worker_with_another_version_is_refused(
    cluster, alone, tmp_path, monkeypatch
):
    mine = connection.versions()
    monkeypatch.setattr(
        connection, "versions", lambda: mine | {"onnxruntime": "0.1"}
    )
    words = ("calibrate", "--config", CONFIG, "-o", tmp_path / "t.json")
    where = ("--cluster", cluster.scheduler_address)
    result = CliRunner().invoke(mrt_cli, list(map(str, (*words, *where))))
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "mrt: a worker of the cluster has onnxruntime "
    )
    assert result.stderr.endswith("and here is 0.1; install the same\n")
    assert not (tmp_path / "t.json").exists()

"""The configs that come with the project: each loads, finds its files, and prepares data as its model wants it."""

from pathlib import Path

import onnx_ir as ir
import pytest

from mrt.calibrate.samples import Samples, open_samples
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.config import Config, DataSettings, load_config
from mrt.evaluate.scores import ranking
from tests.support.shared_data import SHARED, needs_shared

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))


def test_the_digits_configs_find_their_files() -> None:
    for name in ("resnet_digits8", "lenet_digits28"):
        config = load_config(CONFIGS / f"{name}.toml")
        files = (
            config.model.path,
            config.model.params,
            config.calibration_data.path,
            config.evaluation_data.path,
        )
        assert all(path is not None and path.is_file() for path in files)


def test_the_example_of_every_key_loads(tmp_path: Path) -> None:
    example = (
        (CONFIGS / "README.md")
        .read_text()
        .partition("```toml\n")[2]
        .partition("```")[0]
    )
    (tmp_path / "example.toml").write_text(example)
    assert (
        load_config(tmp_path / "example.toml").calibration_data.samples == 100
    )


def test_the_digits_configs_open_their_data() -> None:
    for name, side in (("resnet_digits8", 8), ("lenet_digits28", 28)):
        config = load_config(CONFIGS / f"{name}.toml")
        assert config.model.shapes == {"data": (1, 1, side, side)}
        for data, count in (
            (config.calibration_data, 256),
            (config.evaluation_data, 360),
        ):
            samples = open_data(config, data, dict(config.model.shapes))
            assert len(samples) == len(samples.labels or ()) == count
            assert next(iter(samples))["data"].shape == (1, 1, side, side)


def open_data(
    config: Config,
    data: DataSettings,
    shapes: dict[str, tuple[int, ...]],
    limit: int | None = None,
) -> Samples:
    assert data.path is not None
    return open_samples(
        data.path,
        shapes,
        config.preprocessing_of(list(shapes)),
        limit,
        arrays=data.arrays,
        labels=data.labels,
    )


@needs_shared
@pytest.mark.parametrize("name", NAMES)
def test_every_config_finds_its_files(name: str) -> None:
    config = load_config(CONFIGS / f"{name}.toml")
    paths = (
        config.model.path,
        config.model.params,
        config.calibration_data.path,
        config.evaluation_data.path,
    )
    for path in filter(None, paths):
        relative = path.resolve().as_posix().partition("/shared/data/")[2]
        assert (SHARED / relative if relative else path).exists(), path


@needs_shared
@pytest.mark.parametrize(
    ("name", "limit", "least"),
    [
        ("mnist_cntk", 100, 0.97),
        ("cifar10_resnet20", 100, 0.7),
        ("mlperftiny_resnet8_cifar10", 100, 0.6),
        ("vnncomp_ibp_3_3_8", 100, 0.5),
        pytest.param("squeezenet1.1", 100, 0.55, marks=pytest.mark.slow),
        pytest.param(
            "mobilenetv2_torchvision", 100, 0.75, marks=pytest.mark.slow
        ),
        pytest.param(
            "mobilenetv1_0.25_keras", 100, 0.5, marks=pytest.mark.slow
        ),
    ],
)
def test_data_prepared_by_the_config_suits_the_model(
    name: str, limit: int, least: float
) -> None:
    config = load_config(CONFIGS / f"{name}.toml")
    model = ir.load(SHARED / "onnx" / Path(str(config.model.path)).name)
    (value,) = model_inputs(model)
    shape = tuple(
        size if isinstance(size, int) else 1 for size in value.shape or ()
    )
    samples = open_data(
        config, config.evaluation_data, {str(value.name): shape}, limit
    )
    session = FloatSession(model)
    best = [
        ranking(next(iter(session.run(sample).values())), 1)
        for sample in samples
    ]
    assert (
        sum(
            found == [label]
            for found, label in zip(best, samples.labels or (), strict=True)
        )
        >= least * limit
    )

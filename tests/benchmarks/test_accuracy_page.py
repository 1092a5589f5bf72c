"""The page of accuracies: where its numbers come from, what it says of what cannot be measured, when figures are kept."""

from dataclasses import replace

from click.testing import CliRunner

from benchmarks import accuracy, variants
from benchmarks.accuracy_figures import Figures, measure
from benchmarks.accuracy_page import page
from benchmarks.variants import SUBJECTS, VARIANTS
from tests.support.shared_data import needs_shared

MIB = 1_000_000
PEER = Figures(
    "net", "nncf", images=500, float_top1=0.644, top1=0.626, agreement=0.938, snr_db=30.12, seconds=3.0,
    yardstick_seconds=1.5, peak_bytes=240 * MIB, program_bytes=1_300_000,
)  # fmt: skip
OURS = replace(
    PEER,
    variant="mrt",
    top1=0.64,
    agreement=0.978,
    snr_db=35.0,
    seconds=4.5,
    products=349_151_936,
    engine_share=0.414,
)


def test_each_way_to_quantize_is_a_row_and_the_best_peer_stands_beside_ours():
    lines = page([PEER, OURS], {"cores": 2}, 100).splitlines()
    assert (
        "500 images; float top-1 64.4 %. The best peer disagrees with float on 6.2 % of them, ours on 2.2 %."
        in lines
    )
    assert (
        "| NNCF | 62.6 | 93.8 | 30.1 | 3.0 | 2.0 | 240 | 1.30 | - | - |"
        in lines
    )
    assert (
        "| **mrt**, 8 bits | 64.0 | 97.8 | 35.0 | 4.5 | 3.0 | 240 | 1.30 | 349.2 | 0.41 |"
        in lines
    )
    assert "Cores 2." in lines


def test_a_row_that_cannot_be_measured_says_why_and_no_numbers():
    failed = Figures(
        "net", "nncf", failure="nncf is not installed (pip install .[bench])"
    )
    lines = page([failed, OURS], {}, 100).splitlines()
    assert (
        f"| NNCF: nncf is not installed (pip install .[bench]) |{' - |' * 9}"
        in lines
    )
    assert "500 images; float top-1 64.4 %." in lines


def test_without_the_models_it_says_so_and_writes_nothing(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(variants, "SHARED", tmp_path)
    done = CliRunner().invoke(
        accuracy.main, ["--output", str(tmp_path / "page.md")]
    )
    assert done.exit_code == 0
    assert "squeezenet1.1_fp32.onnx is absent" in done.output.replace("\n", " ")
    assert not (tmp_path / "page.md").exists()


@needs_shared
def test_kept_figures_of_ours_hold_until_the_converter_changes_and_the_peers_longer(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(accuracy, "CACHE", tmp_path)
    monkeypatch.setattr(accuracy, "converter", lambda: "now")
    asked = []
    monkeypatch.setattr(
        accuracy,
        "measured",
        lambda subject, variant, **limits: (
            asked.append(variant.key) or replace(PEER, variant=variant.key)
        ),
    )

    def ask(key, kept=False):
        variant = next(item for item in VARIANTS if item.key == key)
        return accuracy.figures_of(
            SUBJECTS[-1], variant, samples=2, images=2, kept=kept
        ).variant

    assert [ask("mrt"), ask("mrt"), ask("nncf"), ask("nncf")] == [
        "mrt",
        "mrt",
        "nncf",
        "nncf",
    ]
    assert asked == ["mrt", "nncf"]
    monkeypatch.setattr(accuracy, "converter", lambda: "later")
    assert [ask("mrt", kept=True), ask("nncf")] == [
        "mrt",
        "nncf",
    ] and asked == [
        "mrt",
        "nncf",
    ]
    assert ask("mrt") == "mrt" and asked == ["mrt", "nncf", "mrt"]


@needs_shared
def test_figures_come_from_a_conversion_by_the_command():
    found = measure(Figures("cifar10_resnet20", "mrt"), 8, 8)
    assert found.failure is None and found.images == 8
    assert found.agreement >= 0.75 and found.snr_db > 15
    assert (
        0 < found.seconds < 60
        and 250_000 < found.program_bytes < 300_000
        and found.products == 40_551_040
    )
    assert found.engine_share is not None and 0.01 < found.engine_share < 100


@needs_shared
def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(
        "benchmarks.quantizers.importlib.util.find_spec", lambda name: None
    )
    found = measure(Figures("cifar10_resnet20", "nncf"), 2, 4)
    assert (
        found.failure is not None
        and "is not installed (pip install .[bench])" in found.failure
    )

import json
import math

import pytest

from benchmarks.figures import Measured, Outcome, Row, as_json, snr_db
from benchmarks.footprint import Footprint

NEEDS = Footprint("engine", 0.1, 1.0, 10**8)
ENGINE = Row("engine", (21.0, 20.0, 100.0))
PEER = Row("openvino-int8", (25.0, 24.0, 26.0))
ONE = Measured(
    1,
    4_000_000_000,
    (ENGINE, PEER, Row("reference", note="too slow")),
    (250.0, 240.0, 260.0),
)
TWO = Measured(
    2,
    4_000_000_000,
    (Row("engine", (12.0,)), Row("openvino-int8", (15.0,))),
    (400.0,),
)


def test_the_median_ignores_an_outlier():
    assert ENGINE.median_ms == 21.0


def test_the_ratio_is_our_time_over_theirs():
    assert ONE.ratio("openvino-int8") == pytest.approx(21 / 25)
    assert ONE.ratio("engine") == 1


def test_the_rate_and_its_share_of_the_peak_of_the_same_rounds():
    assert ONE.rate("engine") == pytest.approx(
        4 / 0.021
    )  # giga-MAC over seconds
    assert ONE.share("engine") == pytest.approx(4 / 0.021 / 250)


def test_gains_compare_more_threads_with_one():
    outcome = Outcome("net", (ONE, TWO), NEEDS)
    assert outcome.gain(2) == pytest.approx(21 / 12)
    assert outcome.gain(2, "openvino-int8") == pytest.approx(25 / 15)
    assert outcome.peak_gain(2) == pytest.approx(400 / 250)


def test_what_was_not_measured_has_no_figures():
    unmeasured = Measured(1, 10, (Row("engine", note="not built"), PEER))
    assert unmeasured.ratio("openvino-int8") is None
    assert unmeasured.rate("engine") is None
    assert unmeasured.share("openvino-int8") is None
    assert ONE.ratio("onnxruntime-int8") is None
    assert Outcome("net", (TWO,), NEEDS).gain(2) is None


def test_signal_to_noise():
    assert snr_db([3.0, 4.0], [3.0, 4.5]) == pytest.approx(20)
    assert snr_db([1.0], [1.0]) == math.inf
    assert snr_db([0.0], [1.0]) == -math.inf


def test_everything_is_in_the_json():
    exact = Measured(1, 10**9, (Row("engine", (2.0,), snr_db=math.inf),))
    made = json.loads(
        json.dumps(
            as_json(
                {"cores": 2},
                [
                    Outcome("net", (ONE, TWO), NEEDS),
                    Outcome("other", (exact,), NEEDS),
                ],
            ),
            allow_nan=False,
        )
    )
    one = made["models"]["net"]["threads"]["1"]
    assert made["machine"] == {"cores": 2}
    assert made["models"]["net"]["footprint"]["peak_bytes"] == 10**8
    assert one["peak_gmacs"] == 250
    assert one["contenders"]["engine"]["readings_ms"] == [21.0, 20.0, 100.0]
    assert one["contenders"]["openvino-int8"]["engine_ratio"] == pytest.approx(
        0.84
    )
    assert one["contenders"]["reference"] == {
        "median_ms": None, "engine_ratio": None, "gmacs": None, "peak_share": None,
        "busy_cores": None, "snr_db": None, "note": "too slow", "readings_ms": [],
    }  # fmt: skip
    assert made["models"]["net"]["threads"]["2"]["gain"] == pytest.approx(1.75)
    assert (
        made["models"]["other"]["threads"]["1"]["contenders"]["engine"][
            "snr_db"
        ]
        is None
    )

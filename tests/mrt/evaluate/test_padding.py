"""Padding is what a mask of zeros and ones leaves out of an output of tokens, and nothing else."""

import numpy as np
import pytest

from mrt.evaluate.padding import real_tokens

MASK = np.array([[1, 1, 0]])
TOKENS = np.zeros((1, 3, 5))


@pytest.mark.parametrize("name", ["attention_mask", "mask"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_a_mask_leaves_out_the_tokens_where_it_is_0(name, dtype):
    sample = {"input_ids": np.ones((1, 3)), name: MASK.astype(dtype)}
    real = real_tokens(sample, TOKENS)
    assert real is not None
    assert real.shape == (1, 3, 1)
    assert real.tolist() == [[[True], [True], [False]]]


@pytest.mark.parametrize(
    ("name", "mask", "output"),
    [
        ("input_ids", MASK, TOKENS),  # no mask
        ("attention_mask", np.ones((1, 3)), TOKENS),  # no padding
        ("attention_mask", np.zeros((1, 3)), TOKENS),  # nothing but padding
        ("attention_mask", -1e4 * (1.0 - MASK), TOKENS),  # a mask of addends
        ("attention_mask", np.array([[1, 2, 0]]), TOKENS),  # of two sentences
        ("attention_mask", MASK, np.zeros((1, 5))),  # one for the sentence
        ("attention_mask", MASK, np.zeros((1, 3))),  # perhaps of three classes
        ("attention_mask", MASK, np.zeros((1, 4, 3))),
        ("attention_mask", MASK, np.zeros((1, 3, 3, 3))),  # attention's heads
        ("mask", MASK[0], TOKENS),
    ],
)
def test_all_of_it_counts_elsewhere(name, mask, output):
    assert real_tokens({name: mask}, output) is None

"""The limits of a verdict: the figures from which a program counts as good, or as useless, each with its reason.

They are here alone.
"""

from __future__ import annotations

GOOD_DECIBELS = 20.0
"""An error of a tenth of the value: float models that differ by this much are used for each other."""
LEAST_DECIBELS = 10.0
"""An error of a third of the value."""
LEAST_DECIBELS_OF_CHANGE = 10.0
"""An error of a third of what distinguishes the samples, whatever constant the outputs contain."""
FEWEST_TO_JUDGE_CHANGE = 8
"""Samples; a mean of fewer takes up more than an eighth of the change, which a note may leave open and a word may not."""
HIDDEN_CHANGE_DECIBELS = 10.0
"""What all samples have in common is three times what distinguishes them: signal to noise measures little else."""
HIDDEN_COLUMN_DECIBELS = 10.0
"""So much better looks the whole output than a column that it hides."""
HIDDEN_SAMPLES_DECIBELS = 6.0
"""The median sample has twice the error, for its size, that all samples have together."""
LEAST_AGREEMENT = 7 / 8
"""Of the samples, those whose best two classes are close may change: one of the fewest that are held back."""
USELESS_AGREEMENT = 0.75
"""One answer in four is another; a coin gives one in two where there are two classes."""
LEAST_EQUAL = 0.9
"""Of some hundreds of integers, those that lie between two may change."""

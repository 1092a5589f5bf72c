"""One rule per operator of the canonical float graph, registered by name in the module of its family."""

from __future__ import annotations

from collections.abc import Callable

from mrt.quantize.context import Rule

RULES: dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            assert operator not in RULES, f"two rules for {operator}"
            RULES[operator] = function
        return function

    return register

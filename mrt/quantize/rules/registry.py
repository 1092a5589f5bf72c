"""The registry of rules for canonical operators: exact ones, which take precedence, and others.

The module of a family registers its rules when it is imported, and `rules/__init__.py`
imports all families. `rules/lowering.py` chooses among the rules of a node.
"""

from __future__ import annotations

from collections.abc import Callable

from mrt.quantize.context import LoweringRule

INTEGER_RULES: dict[str, LoweringRule] = {}
"""The exact rule of each operator for integral operands."""

RULES: dict[str, LoweringRule] = {}
"""The rule of each operator for operands at any scale."""

OWN_RULES: dict[str, LoweringRule] = {}
"""The rule of each operator of the project's own domain."""


def integer_rule(*operators: str) -> Callable[[LoweringRule], LoweringRule]:
    """Register a function as the exact rule of these operators."""
    return _registering(INTEGER_RULES, operators)


def rule(*operators: str) -> Callable[[LoweringRule], LoweringRule]:
    """Register a function as the rule of these operators at any scale."""
    return _registering(RULES, operators)


def own_rule(*operators: str) -> Callable[[LoweringRule], LoweringRule]:
    """Register a function as the rule of these operators of the project's own domain."""
    return _registering(OWN_RULES, operators)


def _registering(
    table: dict[str, LoweringRule], operators: tuple[str, ...]
) -> Callable[[LoweringRule], LoweringRule]:
    def register(function: LoweringRule) -> LoweringRule:
        for operator in operators:
            assert operator not in table, f"two rules for {operator}"
            table[operator] = function
        return function

    return register

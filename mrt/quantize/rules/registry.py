"""The registry of rules for canonical operators: exact ones, which take precedence, and others.

The module of a family registers its rules when it is imported, and `rules/__init__.py`
imports all families. `rules/lowering.py` chooses among the rules of a node.
"""

from __future__ import annotations

from collections.abc import Callable

from mrt.quantize.context import Rule

INTEGER_RULES: dict[str, Rule] = {}
"""The exact rule of each operator for integral operands."""

RULES: dict[str, Rule] = {}
"""The rule of each operator for operands at any scale."""

OWN_RULES: dict[str, Rule] = {}
"""The rule of each operator of the project's own domain."""


def integer_rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the exact rule of these operators."""
    return _registering(INTEGER_RULES, operators)


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators at any scale."""
    return _registering(RULES, operators)


def own_rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators of the project's own domain."""
    return _registering(OWN_RULES, operators)


def _registering(
    table: dict[str, Rule], operators: tuple[str, ...]
) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for operator in operators:
            assert operator not in table, f"two rules for {operator}"
            table[operator] = function
        return function

    return register

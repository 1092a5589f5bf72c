"""A function of C being written: parameters, and what stands for them where it is called.

No parameter is `restrict`, though no two overlap: gcc 12 at -O2 then computed wrong answers,
on three processors, which its option -fno-ipa-cp made right.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Function:
    """Its arguments are values by number, or places and names of constants as C has them."""

    parameters: list[str] = field(default_factory=list)
    arguments: list[int | str] = field(default_factory=list)
    body: str = ""

    def reads(self, c_type: str, argument: int | str) -> str:
        """One more parameter to read from; its name."""
        name = f"x{len(self.parameters)}"
        self._add(f"const {c_type} *{name}", argument)
        return name

    def writes(self, c_type: str, name: str, argument: int | str) -> None:
        """One more parameter to write to."""
        self._add(f"{c_type} *{name}", argument)

    def _add(self, parameter: str, argument: int | str) -> None:
        self.parameters.append(parameter)
        self.arguments.append(argument)

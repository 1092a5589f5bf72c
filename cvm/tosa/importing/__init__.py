"""A TOSA graph becomes a program, or a refusal that names every operator without an instruction."""

from cvm.tosa.importing.program import program_of

__all__ = ["program_of"]

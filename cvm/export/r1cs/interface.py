"""The first wires of a circuit: the public ones, then those of hidden inputs and of salts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvm.export.r1cs.commitment import committed
from cvm.export.r1cs.disclosure import Disclosure
from cvm.export.r1cs.opening import Opening
from cvm.export.r1cs.secret import Secret, constant
from cvm.export.r1cs.system import System
from cvm.file.format import program_id
from cvm.program import IntArray, Program
from cvm.proof.validate import Proven


@dataclass
class CircuitPort:
    """An input or an output. Its public wires are its elements or, if it is hidden, its commitment with a salt."""

    wires: Secret
    dtype: str
    is_public: bool
    salt: Secret | None = None

    @classmethod
    def of(
        cls, system: System, array: IntArray, dtype: str, *, is_public: bool
    ) -> CircuitPort:
        """New public wires, with the elements of the array if they are shown."""
        shown = array if is_public else np.zeros(1, np.int64)
        return cls(system.new(shown), dtype, is_public)

    def elements(self, system: System, array: IntArray) -> Secret:
        """The wires of the elements of an input."""
        return self.wires if self.is_public else system.new(array)

    def hide(self, system: System, salt: int) -> None:
        """A new wire for the salt, unless the elements are shown."""
        if not self.is_public:
            self.salt = system.new(np.array([salt], object))

    def publish(self, system: System, x: Secret) -> None:
        """Give the public wires their values, and hold them to `x`."""
        if self.salt is not None:
            x = committed(system, system.single(x), self.dtype, self.salt)
        system.set_values(int(self.wires.wires.flat[0]), x.values)
        system.require_equal(x, self.wires)


@dataclass(frozen=True)
class Interface:
    """`elements` are those of each input; `public` and `private` count the wires."""

    inputs: list[CircuitPort]
    outputs: list[CircuitPort]
    elements: list[Secret]
    public: int
    private: int

    @classmethod
    def of(
        cls,
        system: System,
        form: Proven,
        arrays: Mapping[str, IntArray],
        shown: Disclosure,
        opening: Opening,
    ) -> Interface:
        """New wires. Those of the program id and the disclosure are held to their values; inputs and outputs to nothing yet."""
        program = form.program
        head = np.concatenate([id_words(program), shown.words])
        head_wires = system.new(head)
        types = [form.types[port.value] for port in program.outputs]
        outputs = [
            CircuitPort.of(
                system, np.zeros(t.shape, "i8"), t.dtype, is_public=public
            )
            for t, public in zip(types, shown.outputs, strict=True)
        ]
        input_arrays = [arrays[port.name] for port in program.inputs]
        inputs = [
            CircuitPort.of(system, array, port.type.dtype, is_public=public)
            for port, array, public in zip(
                program.inputs, input_arrays, shown.inputs, strict=True
            )
        ]
        count = system.wires - 1
        elements = [
            circuit_port.elements(system, array)
            for circuit_port, array in zip(inputs, input_arrays, strict=True)
        ]
        for port, circuit_port in zip(program.inputs, inputs, strict=True):
            circuit_port.hide(system, opening.inputs.get(port.name, 0))
        for output, circuit_port in zip(program.outputs, outputs, strict=True):
            circuit_port.hide(system, opening.outputs.get(output.name, 0))
        private = system.wires - 1 - count
        system.require_equal(head_wires, constant(head))
        return cls(inputs, outputs, elements, count, private)


def id_words(program: Program) -> IntArray:
    """The program id as words of 32 bits."""
    return np.frombuffer(bytes.fromhex(program_id(program)), ">u4").astype("i8")

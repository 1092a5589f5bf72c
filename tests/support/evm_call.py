"""Deploys a Groth16 verifier on an Ethereum machine (py-evm) and calls it; runs apart, as a command of a Python that has py-evm.

python evm_call.py CONTRACT.bin < calls.json prints JSON: the gas of the deployment, and for each call its answer and gas.
A call is a list as `snarkjs zkey export soliditycalldata` writes it: two numbers, two pairs, two numbers, the signals.
"""

import json
import sys

from eth import constants
from eth.db.atomic import AtomicDB
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.cancun.state import CancunState
from eth.vm.message import Message
from eth.vm.transaction_context import BaseTransactionContext
from eth_utils import keccak

GAS = 30_000_000
SENDER, CONTRACT = b"\x01" * 20, b"\x02" * 20
OF_A_TRANSACTION, OF_A_BYTE, OF_A_ZERO = 21_000, 16, 4


def flat(item):
    if not isinstance(item, list):
        return [int(item, 0)]
    return [number for part in item for number in flat(part)]


def call_data(words):
    """Return the selector of `verifyProof`, and its arguments."""
    signals = len(words[3])
    text = (
        f"verifyProof(uint256[2],uint256[2][2],uint256[2],uint256[{signals}])"
    )
    numbers = [number.to_bytes(32, "big") for number in flat(words)]
    return keccak(text.encode())[:4] + b"".join(numbers)


def message(to, data, code, **more):
    return Message(
        gas=GAS, to=to, sender=SENDER, value=0, data=data, code=code, **more
    )


def main(path):
    with open(path) as file:
        code = bytes.fromhex(file.read().strip())
    context = ExecutionContext(
        coinbase=bytes(20),
        timestamp=1,
        block_number=1,
        difficulty=0,
        mix_hash=bytes(32),
        gas_limit=GAS,
        prev_hashes=[],
        chain_id=1,
        base_fee_per_gas=0,
        excess_blob_gas=0,
    )
    state = CancunState(AtomicDB(), context, constants.BLANK_ROOT_HASH)
    machine = state.computation_class
    transaction = BaseTransactionContext(gas_price=0, origin=SENDER)
    creation = message(
        constants.CREATE_CONTRACT_ADDRESS, b"", code, create_address=CONTRACT
    )
    deployed = machine.apply_create_message(state, creation, transaction)
    assert deployed.is_success
    calls = []
    for words in json.load(sys.stdin):
        data = call_data(words)
        done = machine.apply_message(
            state,
            message(CONTRACT, data, state.get_code(CONTRACT)),
            transaction,
        )
        assert done.is_success
        price = sum(OF_A_BYTE if byte else OF_A_ZERO for byte in data)
        calls.append(
            {
                "answer": int.from_bytes(done.output, "big"),
                "gas": done.get_gas_used() + OF_A_TRANSACTION + price,
            }
        )
    print(json.dumps({"deploy": deployed.get_gas_used(), "calls": calls}))


if __name__ == "__main__":
    main(sys.argv[1])

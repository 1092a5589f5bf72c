"""Limits of a file's sizes; `cvm/SPEC.md` section "Limits". They are checked before memory is allocated."""

MAX_HEADER_BYTES = 2**24
MAX_METADATA_BYTES = 2**26
MAX_CONSTANT_BYTES = 2**36  # all constants with their padding
MAX_INSTRUCTIONS = 2**20
MAX_CONSTANTS = 2**20
MAX_INPUTS = 2**10
MAX_OUTPUTS = 2**10
MAX_NAME_BYTES = 256
MAX_TEXT_BYTES = 2**16  # one label, source or provenance entry of the metadata
MAX_LIVE_INTERVALS = 2**21  # intervals held at once: 32 MiB
MAX_PROOF_WORK = (
    2**26
)  # intervals computed or read and constant elements read by the proof, beyond
PROOF_READS_PER_CONSTANT = 16  # ... this many readings of every constant

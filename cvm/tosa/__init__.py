"""TOSA's files: read and written here, and made programs by `cvm.tosa.importing`."""

"""TOSA's files: read and written here, and turned into programs by `cvm.tosa.importing`."""

"""A proven program as source for another machine: one folder a target, each answering with the bytes of the reference."""

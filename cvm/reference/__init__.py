"""The machine, written to be read: each instruction's rule (`check_x`), interval (`bound_x`) and meaning (`x`)."""

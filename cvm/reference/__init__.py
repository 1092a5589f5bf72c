"""The machine, written to be read: for every instruction its rule (`check_x`), its interval (`bound_x`) and its meaning (`x`)."""

"""The machine: load, validate and run integer programs. Usable without `mrt`."""

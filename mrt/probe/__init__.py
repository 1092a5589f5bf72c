"""Measures ranges on samples that nobody may see: a program that gathers extremes, and the table that these make.

    make_probe   a program of 16-bit values whose only outputs are the extremes so far   mrt/probe/probe.py
    table_of     the calibration table of the extremes                                  mrt/probe/table.py

Whoever runs the probe, in clear or among parties that compute on shares, gets the same
integers, so the table is the same to the byte.
"""

"""Measures the range of every value on real samples; decides nothing about bits."""

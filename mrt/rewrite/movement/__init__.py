"""Operators that move elements: Reshape, Transpose, Slice, Concat, Pad and their like."""

"""Resize, GridSample, Col2Im, and inputs that are pictures' bytes."""

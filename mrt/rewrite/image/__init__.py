"""Resize, GridSample, Col2Im, and pictures: inputs that are the bytes of an image."""

"""Fourier transforms and the windows in front of them."""

"""Passes that compute nodes of constants at conversion."""

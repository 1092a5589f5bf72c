"""The calibration table: what was measured on samples and decided from them, as a small readable file."""

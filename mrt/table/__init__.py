"""The calibration table: a small readable file of measurements and decisions on samples."""

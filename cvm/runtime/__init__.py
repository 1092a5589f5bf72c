"""Running a proven program: samples in, integers out, with receipts, traces and replay."""

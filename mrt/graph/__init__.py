"""The float graph: readers, the one way to change it, and notes that passes leave on values."""

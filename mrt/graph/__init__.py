"""The ground floor of the float graph: its readers, the one way to change it, and the notes that passes leave on values."""

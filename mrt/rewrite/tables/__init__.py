"""Tables of rows: inputs whose columns measure different things."""

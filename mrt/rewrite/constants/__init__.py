"""Nodes whose operands are constants are computed at conversion."""

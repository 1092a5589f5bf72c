"""Pools of every kind."""

"""Lookups, orders and choices: Gather, TopK, OneHot, NonMaxSuppression and their like."""

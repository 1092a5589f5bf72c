"""Lookups, orders and choices: Gather, TopK, OneHot, NonMaxSuppression and others."""

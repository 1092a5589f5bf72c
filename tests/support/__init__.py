"""Helpers that several tests share.

They make programs, graphs and files, contain second implementations, and find the real
data.
"""

"""The page of `mrt report`: what a program costs in accuracy, work and bytes, and how to mend it."""

from mrt.page.facts import Facts, ReportSubject, gather
from mrt.page.render import page

__all__ = ["Facts", "ReportSubject", "gather", "page"]

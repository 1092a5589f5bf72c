"""The target `web`: the target `c` compiled to WebAssembly, in a package of JavaScript with a page."""

from cvm.export.web.folder import write

__all__ = ["write"]

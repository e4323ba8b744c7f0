"""The version of this package, for those below its face who have to name it."""

__version__ = "0.1.0"

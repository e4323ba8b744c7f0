"""pageseek reads from Parquet files only the pages that an answer needs."""

__version__ = "0.1.0"
__all__ = ["__version__"]

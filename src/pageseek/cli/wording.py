"""Errors of functions in the words of the command."""

from __future__ import annotations

# arguments of the functions as errors name them, and the same options of the command
WORDS = (
    ("overwrite=True", "--overwrite"),
    ("in_place=True", "--in-place"),
    ("replace=True", "--replace"),
    ("output=PATH", "--output FILE"),
    ("output=...", "--output FILE"),
    ("output=", "--output "),
    ("distinct=[...]", "--distinct"),
    ("lookup=[...]", "--lookup"),
    ("bitmap=[...]", "--bitmap"),
    ("trigram=[...]", "--trigram"),
    ("file_bloom=[...]", "--file-bloom"),
    ("bloom=[...]", "--bloom"),
    (
        "commit it through the table (Delta Lake: table=DeltaTable(...); Iceberg: table=catalog.load_table(...))",
        "commit it through the table (in Python: table= of pageseek.index.attach)",
    ),
)


def in_options(message: str) -> str:
    """The message of an error with the options of the command in place of arguments."""
    for word, option in WORDS:
        message = message.replace(word, option)
    return message

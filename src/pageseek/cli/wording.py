"""Errors of functions in the words of the command."""

from __future__ import annotations

import re
from collections.abc import Sequence

# arguments of the functions as errors name them, and the same options of the command
WORDS = (
    (
        "give its bytes: open(..., 'rb').read()",
        "give it as standard input: - in place of its name, and < FILE",
    ),
    (
        "{a,b} is no wildcard: give a list of paths",
        "{a,b} is no wildcard: leave out the quotes, and the shell makes a list of it",
    ),
    (
        "give files of other names by a glob or as a list",
        "name files of other names, or give a glob in quotes",
    ),
    (
        ", as storage_options, or an address with",
        " (in Python: storage_options=...), or an address with",
    ),
    (": pyarrow.csv and pyarrow.json read these", ""),
    ("; attach_all adds indexes to all", "; --in-place takes them all"),
    ("call it for each of them, such as", "name one of them, such as"),
    ("open takes one file, the source has", "this command takes one file, and there are"),
    ("; scan reads all", "; head, count and scan read all"),
    ("leave it out by columns=[...]", "leave it out by --columns"),
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
    ("try later, or raise retries=, timeout=", "try later"),
    (
        "or give (filesystem, path) with a filesystem of pyarrow or fsspec, or download the file",
        "or download the file",
    ),
    (
        "commit it through the table (Delta Lake: table=DeltaTable(...); Iceberg: table=catalog.load_table(...))",
        "commit it through the table (in Python: table= of pageseek.index.attach)",
    ),
)
CREDENTIALS = re.compile(
    r"give credentials in the environment or as storage_options(, or for a public bucket storage_options=\{.*?\})?"
)
# schemes of URLs, and the variables of the environment from which obstore takes credentials
VARIABLES = (
    (("gs", "gcs"), "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE"),
    (("az", "abfs", "abfss", "adl", "azure"), "AZURE_STORAGE_ACCOUNT_KEY", "AZURE"),
    (("s3", "s3a"), "AWS_ACCESS_KEY_ID", "AWS"),
)
DESCENDING = re.compile(r"write \('(.*)', 'descending'\)")
VALUE = re.compile(
    r": give params=\[\.\.\.\]; in a prepared query write :name|: give the filter to Scan\.prepare,.*?params=\{.*?\}"
)
# not within a path, where it may be the name of a partition
VERSION = re.compile(r"(?<![\w/'\"])(version|timestamp|snapshot)=(?:(?=(['\d]))|(?=[\s:,;]|$))")
OPTIONS = {"version": "--table-version", "timestamp": "--timestamp", "snapshot": "--snapshot"}


def in_options(
    message: str, given: Sequence[str] = (), more: Sequence[tuple[str, str]] = ()
) -> str:
    """The message of an error with the options of the command in place of arguments.

    `given`: what the user wrote, such as a filter; it stays as it is. `more`: words beside `WORDS`.
    """
    own = [word.partition("=")[2] if word.startswith("--") else word for word in given]
    own = [shown for word in own if "=" in word for shown in (word, " ".join(word.split()))]
    for number, word in enumerate(own):
        message = message.replace(word, f"\0{number}\0")
    for word, option in (*WORDS, *more):
        message = message.replace(word, option)
    message = CREDENTIALS.sub(_credentials, message)
    message = DESCENDING.sub(r"write \1:desc", message)
    message = VALUE.sub(": write the value in its place", message)
    message = VERSION.sub(lambda found: OPTIONS[found[1]] + (" " if found[2] else ""), message)
    return re.sub("\0(\\d+)\0", lambda found: own[int(found[1])], message)


def _credentials(found: re.Match[str]) -> str:
    """Credentials in the environment, of the store that the message names."""
    for schemes, variable, store in VARIABLES:
        if any(re.search(rf"\b{scheme}://", found.string[: found.start()]) for scheme in schemes):
            public = f"; a public bucket needs {store}_SKIP_SIGNATURE=true" if found[1] else ""
            return f"give credentials in the environment, such as {variable} (in Python: storage_options=...){public}"
    return "give credentials in the environment (in Python: storage_options=...)"

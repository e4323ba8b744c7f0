"""Where `write` puts files: a folder, or a table of Delta Lake or Iceberg, which gets them by a commit of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pageseek.base.errors import UnsupportedError
from pageseek.spark.session.settings import Settings
from pageseek.spark.writing.commit import SUCCESS, Staging, visible
from pageseek.spark.writing.write_task import StagedReport
from pageseek.storage.output_folders import OutputFolder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType


class Target:
    """A folder of files.

    Attributes
    ----------
    folder : OutputFolder
        Where files are staged, and then lie.
    name : str
        What errors call it.
    keeps : bool
        Whether the columns of partitions are in the files, too.
    states : bool
        Whether a commit wants statistics of the files.
    wants_a_file : bool
        Whether a write without rows makes a file.
    has_binary_folders : bool
        Whether a column of binary, whose values are text, may be one of partitions.
    """

    keeps = states = False
    wants_a_file = has_binary_folders = True

    def __init__(self, folder: OutputFolder, name: str) -> None:
        self.folder, self.name = folder, name

    def fitted(self, df: DataFrame, settings: Settings) -> DataFrame:
        """The DataFrame with the columns that can be written. UnsupportedError: it has others."""
        return df

    def partitions(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that become folders. `given`: those that the caller named."""
        return given

    def text(self, column: Column, kind: SparkType) -> Column:
        """The texts of a partition column, each of which stands for one value."""
        return column.cast("string")

    def check(self, mode: str, dynamic: bool) -> None:
        """Before any task runs. UnsupportedError: files that are there could not be replaced."""
        linked = self.folder.linked() if mode == "overwrite" else []
        if linked:
            raise UnsupportedError(
                f"{self.name}: {linked[0]} is a link to a folder, whose files may be those of others: take the link away, or write to "
                "the folder that it leads to"
            )

    def files(self) -> Sequence[str]:
        """The files that are there."""
        return visible(self.folder)

    def beside(self, mode: str, dynamic: bool) -> Sequence[str]:
        """The files that may stay beside those of a write, and are read together with them."""
        return self.files() if mode == "append" or (mode == "overwrite" and dynamic) else ()

    def publish(
        self, staging: Staging, made: Sequence[StagedReport], mode: str, dynamic: bool
    ) -> int | None:
        """Make staged files visible at once. Returns how many old files it has taken out; None: it did nothing."""
        there = self.files() if mode != "append" else []
        if mode == "error" and there:
            raise FileExistsError(
                f"{self.name}: files have come into it meanwhile; nothing was written"
            )
        if mode == "ignore" and there:
            return None
        old: Sequence[str] = []
        if mode == "overwrite":
            old = replaced(there, made, dynamic)
        staging.publish({one.staged or "": one.name for one in made}, old, mode == "overwrite")
        return len([name for name in old if name != SUCCESS])


def replaced(there: Sequence[str], made: Sequence[StagedReport], dynamic: bool) -> list[str]:
    """The files that an overwrite replaces: all, or those in the folders that were written."""
    if not dynamic:
        return list(there)
    folders = {one.name.rpartition("/")[0] for one in made}
    return [name for name in there if name.rpartition("/")[0] in folders and name != SUCCESS]

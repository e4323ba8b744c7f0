"""What several files of tests have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/a table")
    made.create_namespace("n")
    yield made
    made.close()


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    from support.iceberg_tables import made_in

    return made_in(catalog)

"""Tables of an Iceberg REST catalog, by pyiceberg's client (Iceberg REST Catalog API: config, load table)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from support.iceberg_by_hand import Model, as_text


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    made = Model(tmp_path, 4)
    made.append()
    made.positions()
    made.values()
    made.append()
    yield made
    made.catalog.close()


@pytest.fixture
def rest(model: Model) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            location = model.table.metadata_location
            answers = {
                "/v1/config": {"defaults": {}, "overrides": {}},
                "/v1/namespaces/n/tables/t": {
                    "metadata-location": location, "config": {},
                    "metadata": json.loads(Path(location.removeprefix("file://")).read_text()),
                },
            }  # fmt: skip
            body = json.dumps(answers.get(path, {})).encode()
            self.send_response(200 if path in answers else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_table_of_a_rest_catalog(rest: str, model: Model) -> None:
    from pyiceberg.catalog.rest import RestCatalog

    table = RestCatalog("rest", uri=rest).load_table("n.t")
    scan = ps.scan(table)
    assert as_text(scan.to_table().to_pylist()) == as_text(model.rows())
    wanted = [row for row in model.rows() if row["v"] == 3]
    assert as_text(scan.filter("v = 3").to_table().to_pylist()) == as_text(wanted)
    first = table.snapshots()[0].snapshot_id
    assert ps.scan(table, snapshot=first).count_rows() > 0
    (note,) = scan.explain().to_dict()["notes"]
    assert note.startswith("Iceberg table ") and str(table.current_snapshot().snapshot_id) in note

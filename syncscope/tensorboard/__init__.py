"""The tab "Syncscope" of TensorBoard: the page of every recording below the logdir.

TensorBoard imports this in every environment in which both are installed, so it imports little. Whoever reaches the server
reads what it serves: the front end, and recordings that really lie below the logdir, by the names that were found there.
"""

from __future__ import annotations

import gzip
import json
import mimetypes
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Any
from urllib.parse import parse_qs

from tensorboard.plugins import base_plugin

from syncscope.tensorboard.recordings import Recordings

FRONT = resources.files("syncscope.exporters.html").joinpath("front")
POLICY = "default-src 'none'; frame-ancestors 'self'"  # nothing here is a page of its own
Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]


class Tab(base_plugin.TBPlugin):
    """The plugin, as TensorBoard finds it by its entry point."""

    plugin_name = "syncscope"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self.recordings = Recordings(context.logdir)

    def is_active(self) -> bool:
        """Whether there is anything to see."""
        return self.recordings.any()

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Which module draws the tab."""
        return base_plugin.FrontendMetadata(es_module_path="/tensorboard.js", tab_name="Syncscope", disable_reload=True)

    def get_plugin_apps(self) -> dict[str, Callable[[Environ, Start], Iterable[bytes]]]:
        """By path: the files of the front end, the list of recordings, and a recording."""
        files = {
            f"/{file.name}": self._file(file.name) for file in FRONT.iterdir() if file.name.endswith((".js", ".css"))
        }
        return {
            **files,
            "/runs": self._json(lambda _: self.recordings.listed()),
            "/summary": self._json(lambda run: self.recordings.summary(run)),
            "/recording": self._json(lambda run: self.recordings.page(run)),
        }

    def _file(self, name: str) -> Callable[[Environ, Start], Iterable[bytes]]:
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"

        def app(environ: Environ, start: Start) -> Iterable[bytes]:
            return answer(environ, start, FRONT.joinpath(name).read_bytes(), f"{kind}; charset=utf-8")

        return app

    def _json(self, give: Callable[[str], object]) -> Callable[[Environ, Start], Iterable[bytes]]:
        def app(environ: Environ, start: Start) -> Iterable[bytes]:
            run = parse_qs(environ.get("QUERY_STRING", "")).get("run", [""])[0]
            content = give(run)
            body = content if isinstance(content, bytes) else json.dumps(content, allow_nan=False).encode()
            return answer(environ, start, body, "application/json")

        return app


def answer(environ: Environ, start: Start, body: bytes, kind: str) -> Iterable[bytes]:
    """Answer a request, packed if the browser unpacks it; `body` may be packed already."""
    if environ.get("REQUEST_METHOD", "GET") not in ("GET", "HEAD"):
        start("405 Method Not Allowed", [("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")])
        return [b""]
    headers = [
        ("Content-Type", kind),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", POLICY),
        ("Cache-Control", "no-cache"),
    ]
    packed = body[:2] == b"\x1f\x8b"
    if "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
        body = body if packed else gzip.compress(body, 4)
        headers.append(("Content-Encoding", "gzip"))
    elif packed:
        body = gzip.decompress(body)
    headers.append(("Content-Length", str(len(body))))
    start("200 OK", headers)
    return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else body]

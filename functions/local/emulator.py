"""The AWS of one machine: moto behind a lock, in a process of its own.

moto's DynamoDB does not lock: of two conditional writes at once both may win, and a refused transaction puts back a
copy of its tables and with it undoes what others wrote meanwhile.  So requests to DynamoDB and its streams go one
at a time; every other service is left as it is.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Self, cast

from functions.kit.dataclass import dataclass
from functions.local import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    Environ = dict[str, Any]
    WSGIApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

SERVICES = ("dynamodb", "dynamodbstreams", "sqs", "sns", "ssm", "sts")
"""Built before the address is announced, so that no first call is a slow one."""


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """A running emulator.  `with Emulator.start() as emulator:` stops it at the end."""

    endpoint: str
    server: processes.ServerProcess

    @classmethod
    def start(cls, port: int = 0, log: Path | None = None) -> Self:
        """Start one, empty; port 0 takes a free port.  Raises PortTakenError, NotStartedError."""
        server = processes.start("functions.local.emulator", "--port", str(port), log=log)
        return cls(endpoint=server.url, server=server)

    @property
    def pid(self) -> int:
        return self.server.pid

    def stop(self) -> None:
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class OneAtATime:
    """A WSGI application that lets one DynamoDB request at a time through to moto."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not is_dynamodb(environ):
            return self._application(environ, start_response)
        # The body is read first: a caller that is stopped while sending must not hold the lock.
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._lock:
            # Joined inside the lock: an application may compute its answer while it is being read.
            return [b"".join(self._application(environ, start_response))]


def is_dynamodb(environ: Environ) -> bool:
    """Whether a request is for DynamoDB or its streams: by its target, or by what it was signed for (SigV4 scope)."""
    target = str(environ.get("HTTP_X_AMZ_TARGET", ""))
    if target.startswith(("DynamoDB_", "DynamoDBStreams_")):
        return True
    credential = str(environ.get("HTTP_AUTHORIZATION", "")).partition("Credential=")[2].partition(",")[0]
    scope = credential.split("/")
    return len(scope) >= 5 and scope[3] == "dynamodb"  # noqa: PLR2004 - key/date/region/service/aws4_request


def serve(port: int, parent: int | None) -> None:
    """Serve until SIGTERM, Ctrl-C or the parent's end."""
    listener = processes.listen(port)
    processes.end_with(parent)
    url = f"http://{processes.LOOPBACK}:{listener.getsockname()[1]}"
    _keep_to_this_machine()
    server = _server(listener.fileno())
    processes.announce(url)
    try:
        server.serve_forever()
    finally:
        listener.close()


def _keep_to_this_machine() -> None:
    # moto delivers SNS messages with requests, which would ask a proxy for 127.0.0.1 too.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"


def _server(fd: int) -> Any:
    # Imported here: moto takes a second to load, and who only starts the process or tests the lock need not pay it.
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415

    from functions.local import moto_repairs  # noqa: PLC0415

    class QuietHandler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open between calls, as on AWS
        disable_nagle_algorithm = True  # or the kernel holds back each answer's body for up to 40 ms

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Requests are not logged: a worker's keep-alive alone would fill the screen."""

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto_repairs.apply()
    moto = DomainDispatcherApplication(create_backend_app)
    for service in SERVICES:
        moto.app_instances[service] = create_backend_app(cast("Any", service))
    return make_server(processes.LOOPBACK, 0, OneAtATime(moto), threaded=True, request_handler=QuietHandler, fd=fd)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m functions.local.emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--parent", type=int, help="end with this process, which must be the one that starts us")
    options = parser.parse_args(arguments)
    try:
        serve(options.port, options.parent)
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()

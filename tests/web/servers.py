"""Servers for tests: in a thread of this process."""

import threading
from contextlib import contextmanager

from clew.web._serve import _listening, _Server


@contextmanager
def running(app):
    """Run an application on a free port of this machine; gives its address."""
    ready = threading.Event()
    listening = _listening("127.0.0.1", 0)
    server = _Server(app, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(60), "the server did not start"
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.handle_exit(15, None)
        thread.join()
        listening.close()

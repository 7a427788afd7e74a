"""Runs ministack with the interpreter of its own environment, and ends it, with all it started, after its parent.

Standard library only, apart from ministack itself: nothing of ours is in that environment.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import threading
import time

PARENT_CHECK_EVERY_S = 0.2


def watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_EVERY_S)
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)  # the parent would have, had it lived
    # We lead a group of our own; functions that ministack runs as processes belong to it.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=watch, args=(int(sys.argv.pop()),), daemon=True).start()
    importlib.import_module("ministack.app").main()

"""Runs inside WebAssembly: probe, wait for a program, run it and report its outcome in a file.

Its first line of output is what the probe found; nothing of a program has run by then. Its arguments are the source of the
probe, and the paths of the working directory and of the report.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve one program."""
    probe, workdir, report_path = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from guest.cell import (  # It is copied next to this file.
        hide,
        new_main,
        own_modules,
        run,
        set_input,
        set_streams,
    )
    from guest.serialization import unpack_all
    from guest.wire import outcome_frame

    os.chdir(workdir)
    report = os.open(report_path, os.O_WRONLY)
    set_streams()  # What was printed survives the end of the process.
    exec(probe, {})  # noqa: S102 - it is ours
    request = json.loads(sys.stdin.buffer.readline())
    hide(own_modules())
    packages = os.path.join(sys.path[0], "packages")
    sys.argv, sys.path[:] = [""], ["", *sys.path[1:], packages]
    names = new_main()
    names |= unpack_all(request["variables"])
    set_input(request["stdin"] or "")
    outcome = run(
        request["code"], names, max_view_bytes=request["views"], return_value=request["return_value"]
    )
    data = memoryview(outcome_frame(outcome))
    while data:
        data = data[os.write(report, data) :]
    os._exit(0)


if __name__ == "__main__":
    main()

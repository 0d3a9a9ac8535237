"""The command line with workers that load no libraries ahead: `python -m tests.support.lean_cli`."""

from __future__ import annotations

from code_chains.__main__ import main
from code_chains.executors import SandboxExecutor

if __name__ == "__main__":
    (SandboxExecutor.__init__.__kwdefaults__ or {})["preload"] = ()
    main()

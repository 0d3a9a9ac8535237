"""Answer questions with executed code: plain LangChain chains, no graph runtime."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from code_chains._lazy import names_of_stub
from code_chains._version import __version__ as __version__

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)


def load_ipython_extension(shell: Any) -> None:
    """Register `%%code_chain` and `%%lesson`; called by `%load_ext code_chains`."""
    notebook = import_module(f"{__name__}.apps.notebook")
    shell.register_magics(notebook.CodeChainMagics(shell))
    shell.register_magics(import_module(f"{__name__}.apps.lesson_magic").LessonMagics(shell))
    shell.input_transformers_cleanup.append(notebook.keep_questions)

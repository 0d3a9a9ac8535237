"""What the executor runs: it makes modules of sources, and starts the program among them."""

import sys
import types
from typing import Any

PACKAGE = "_file_profiles"


def start(request: dict[str, Any]) -> None:
    """Print the profiles of files.

    Args:
        request: `sources`, names of modules with their text; `files`, names; and `seconds`, the processor time for each.
    """
    package = types.ModuleType(PACKAGE)
    package.__path__ = []
    sys.modules[PACKAGE] = package
    for name, source in request["sources"]:
        module = types.ModuleType(f"{PACKAGE}.{name}")
        module.__package__ = PACKAGE
        sys.modules[module.__name__] = module
        exec(compile(source, f"{name}.py", "exec"), vars(module))
    sys.modules[f"{PACKAGE}.program"].main(request["files"], request["seconds"])

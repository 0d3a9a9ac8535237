"""What the executor runs: it makes modules of the sources in `request`, and starts the program among them."""

import sys
import types

package = types.ModuleType("_file_profiles")
package.__path__ = []
sys.modules["_file_profiles"] = package
for name, source in request["sources"]:  # type: ignore[name-defined]  # noqa: F821 - a variable of the run
    module = types.ModuleType(f"_file_profiles.{name}")
    module.__package__ = "_file_profiles"
    sys.modules[module.__name__] = module
    exec(compile(source, f"{name}.py", "exec"), vars(module))
sys.modules["_file_profiles.program"].main(request["files"], request["seconds"])  # type: ignore[name-defined]  # noqa: F821

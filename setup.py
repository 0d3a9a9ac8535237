"""Build the package with the folder `snippets/` in it; all else is declared in setup.cfg.

`package_dir` could map the folder too, but then an editable install is an import hook instead of a path, and no editor or
type checker finds code_chains.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SNIPPETS = sorted(Path("snippets").glob("*/*.py"))


class BuildWithSnippets(build_py):
    """Copy the snippets to where `code_chains.retrieval.curated` looks first."""

    def get_source_files(self) -> list[str]:
        """Return what a source distribution holds, the snippets included."""
        return [*super().get_source_files(), *map(str, SNIPPETS)]

    def run(self) -> None:
        """Copy the package, and the snippets into it unless the package stays where it is."""
        super().run()
        if not self.editable_mode:
            for path in SNIPPETS:
                target = Path(self.build_lib, "code_chains", "curated", path.relative_to("snippets"))
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": BuildWithSnippets})

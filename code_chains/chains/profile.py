"""files, variables, (schema_only) -> profiles, notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr

from code_chains import profiles
from code_chains.chains.base import Config, Flow, RunFunction, State, StreamingChain
from code_chains.executors.base import Executor
from code_chains.executors.inputs import files_on_disk

if TYPE_CHECKING:
    from code_chains.profiles import FileProfiler


_SAMPLES = 3
"""Rows of a table that a model is shown where SQL reads it."""


class ProfileChain(StreamingChain):
    """Describe the files and tables of a question for the models. No model is called.

    Adds `profiles`: texts about `files`, how each is read and what is in it, and about `variables` that are
    tables. Those of files are computed by a program that runs in the executor, once per content. All hold
    first rows and ranges of values unless `schema_only` is set. Adds `notes` for people: which rows of a file are left
    out, what is read otherwise than it stands there, and what is not certain.

    Args:
        executor: Where the programs of answers run.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> with SandboxExecutor(preload=()) as sandbox:
        ...     chain = ProfileChain(sandbox)
        ...     print(chain.invoke({"query": "?", "files": {"n.json": b"[1, 2]"}})["profiles"]["files"]["n.json"])
        - file `n.json` in the working directory, 6 bytes: JSON, encoding utf-8
          read it with:
            import json
            data = json.load(open("n.json", encoding="utf-8"))
          structure: [int, …] (2 items)
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["files", "variables", "schema_only"]
    output_keys: ClassVar[list[str]] = ["profiles", "notes"]

    name: str | None = "profile"
    executor: Executor
    _profiler: FileProfiler | None = PrivateAttr(None)

    def __init__(self, executor: Executor, **kwargs: Any) -> None:
        super().__init__(**{"executor": executor, **kwargs})

    @property
    def profiler(self) -> FileProfiler:
        """What profiles files, once per content; made for the first of them."""
        self._profiler = self._profiler or profiles.FileProfiler(self.executor)
        return self._profiler

    def is_needed(self, values: State) -> bool:
        """Return whether there are files or tables."""
        variables = values.get("variables")
        has_tables = isinstance(variables, Mapping) and any(
            profiles.is_table(one) for one in variables.values()
        )
        return has_tables or self._has_files(values)

    def skipped(self) -> State:
        """Return that there is nothing to note."""
        return {"notes": []}

    def _has_files(self, values: Mapping[str, Any]) -> bool:
        return bool(values.get("files"))

    def _flow(self, values: State, config: Config) -> Flow:
        files = profiles.Profiles()
        if self._has_files(values):
            is_python = self.executor.language == "python"
            files = yield RunFunction(self._profile, values, config, self._aprofile if is_python else None)
        variables = {}
        if values.get("variables"):
            variables = yield RunFunction(_profile_variables, values, config)
        yield {"profiles": {"files": files, "variables": variables}, "notes": files.notes}

    def _profile(self, values: Mapping[str, Any]) -> profiles.Profiles:
        schema_only = bool(values.get("schema_only"))
        with files_on_disk(values["files"]) as files:
            if self.executor.language == "python":
                return self.profiler.profile(files, schema_only=schema_only)
            return profiles.Profiles(self.executor.describe_files(files, 0 if schema_only else _SAMPLES))

    async def _aprofile(self, values: Mapping[str, Any]) -> profiles.Profiles:
        with files_on_disk(values["files"]) as files:
            return await self.profiler.aprofile(files, schema_only=bool(values.get("schema_only")))


def _profile_variables(values: Mapping[str, Any]) -> dict[str, str]:
    from code_chains.executors.values import check_variables

    variables = check_variables(values["variables"])
    return profiles.profile_variables(variables, schema_only=bool(values.get("schema_only")))

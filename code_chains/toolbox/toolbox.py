"""The tools that programs of a chain may call."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from pydantic import ValidationError, create_model

from code_chains.errors import ConfigurationError, InputError, check_bool
from code_chains.executors.approval import ApproveTools
from code_chains.executors.signatures import Signature

if TYPE_CHECKING:
    from code_chains.toolbox.invoking import BudgetGuard

RESERVED = frozenset(
    ("result", "final_answer", "ToolError", "np", "pd", "plt", "numpy", "pandas", "matplotlib")
)
"""Names that programs use for something else."""
_CALLABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INTRODUCTION = (
    "These functions exist already; call them, and do not import them. A call that fails raises ToolError."
)


class Toolbox:
    """Tools that programs may call, as functions of the same names.

    Args:
        tools: LangChain tools, or typed functions, sync or async, whose docstrings describe them. Whether a
            tool has effects is read from its `metadata`: `{"read_only": True}`, `{"pure": True}` or MCP's
            `readOnlyHint`; without them it is taken to have some.
        approve: A function, sync or async, that sees each call before it is made (a `ToolRequest`). It
            returns True, or False or the reason as text, which the program receives as a `ToolError`.
        repeat_effects: Whether a program may be repaired after it has called a tool that is not marked as read-only. By
            default that ends the work (`stop_reason` is `effects`), unless `approve` decides on each call.

    Raises:
        ConfigurationError: A tool cannot be a function of a program; the message says why.
    """

    def __init__(
        self,
        tools: Iterable[BaseTool | Callable[..., Any]],
        *,
        approve: ApproveTools | None = None,
        repeat_effects: bool = False,
    ) -> None:
        given: object = tools
        if isinstance(given, str | BaseTool) or not isinstance(given, Iterable):
            raise ConfigurationError("tools", given, "a list of LangChain tools or typed functions")
        if approve is not None and not callable(approve):
            raise ConfigurationError(
                "Toolbox.approve", approve, "a function that returns True, False or a reason"
            )
        check_bool("Toolbox.repeat_effects", repeat_effects)
        self.approve = approve
        self.repeats_effects: bool = repeat_effects or approve is not None
        self._tools: dict[str, BaseTool] = {}
        for each in tools:
            tool = _as_tool(each)
            if tool.name in self._tools:
                raise ConfigurationError("tools", tool.name, "each name once; rename one of these tools")
            self._tools[tool.name] = tool

    @classmethod
    def ensure(cls, tools: Toolbox | Sequence[BaseTool | Callable[..., Any]] | None) -> Toolbox | None:
        """Return tools as a toolbox; None if there are none."""
        if tools is None or isinstance(tools, Toolbox):
            return tools or None
        return cls(tools) or None

    def __len__(self) -> int:
        return len(self._tools)

    def __getitem__(self, name: str) -> BaseTool:
        """Return a tool by its name."""
        return self._tools[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    @property
    def program_names(self) -> tuple[str, ...]:
        """The names that a program finds: those of the tools and of their exception."""
        return (*self._tools, "ToolError")

    def check_variables(self, variables: Iterable[str]) -> None:
        """Raise if a variable of a run would replace a tool.

        Raises:
            InputError: One has the name of a tool.
        """
        if taken := sorted(set(self._tools).intersection(variables)):
            raise InputError(f"The variable {taken[0]!r} has the name of a tool. Give it another name.")

    def guard(self) -> BudgetGuard:
        """Return what checks the calls of a run that begins now, within the budgets of this context."""
        from code_chains.toolbox.invoking import BudgetGuard

        return BudgetGuard(self._tools)

    def is_async(self, name: str) -> bool:
        """Return whether a tool has a coroutine of its own."""
        from code_chains.toolbox.invoking import is_async

        return is_async(self._tools[name])

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and return what a program receives."""
        from code_chains.toolbox.invoking import invoke

        return invoke(self._tools[name], arguments)

    async def acall(self, name: str, arguments: dict[str, Any]) -> Any:
        """Do what `call` does without blocking the event loop."""
        from code_chains.toolbox.invoking import ainvoke

        return await ainvoke(self._tools[name], arguments)

    def explain(self, error: BaseException) -> str:
        """Return what was wrong with the arguments of a call; empty if an error says something else."""
        from code_chains.toolbox.arguments import describe_wrong_arguments

        return describe_wrong_arguments(error) if isinstance(error, ValidationError) else ""

    @functools.cached_property
    def signatures(self) -> dict[str, Signature]:
        """The signatures of the tools, by name."""
        from code_chains.toolbox.signatures import signature_of

        return {name: signature_of(tool) for name, tool in self._tools.items()}

    @property
    def is_read_only(self) -> bool:
        """Whether no tool has effects."""
        return all(signature.effect != "other" for signature in self.signatures.values())

    @property
    def fingerprint(self) -> list[str]:
        """What the model is told about the tools, which distinguishes cached answers."""
        return [f"{signature} {signature.effect}" for signature in self.signatures.values()]

    def format_for_model(self) -> str:
        """Describe the tools to the model that writes programs: signatures and one line each."""
        return "\n".join([_INTRODUCTION, "```python", *map(str, self.signatures.values()), "```"])


def check_tool_name(name: object) -> str:
    """Return a name by which a model can call a tool.

    Raises:
        ConfigurationError: Providers refuse it.
    """
    if not isinstance(name, str) or not _CALLABLE.fullmatch(name):
        remedy = "at most 64 letters, digits, underscores and dashes, e.g. 'run_python'"
        raise ConfigurationError("name", name, remedy, because="no model could call a tool of this name")
    return name


def _as_tool(given: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return a tool, checked.

    Raises:
        ConfigurationError: It cannot be a function of a program.
    """
    from code_chains.toolbox.signatures import signature_of

    if isinstance(given, BaseTool):
        tool = _with_one_argument(given) if isinstance(given, Tool) and given.args_schema is None else given
    elif inspect.isroutine(given):
        tool = _from_function(given)
    else:
        raise ConfigurationError(
            "tools", given, "LangChain tools or typed functions, e.g. a function with @tool"
        )
    _check_name(tool.name)
    signature_of(tool)
    return _guarded(tool)


def _from_function(function: Callable[..., Any]) -> BaseTool:
    name = getattr(function, "__name__", "")
    is_async = inspect.iscoroutinefunction(function)
    if not function.__doc__:
        remedy = "a docstring in the function: it tells the model what the function does"
        raise ConfigurationError("tools", name or function, remedy)
    try:
        return StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            name=name,
            metadata=getattr(function, "metadata", None),
        )
    except (TypeError, ValueError, NameError) as error:
        raise ConfigurationError(
            "tools", name, f"a function with type hints that have a JSON schema ({error})"
        ) from error


def _with_one_argument(tool: Tool) -> BaseTool:
    """Return a tool that takes one argument with a schema, which names the argument as its function does."""
    function: Any = tool.func or tool.coroutine
    try:
        parameter = next(iter(inspect.signature(function).parameters.values()))
        hints = get_type_hints(function)
    except (StopIteration, TypeError, ValueError, NameError):
        parameter, hints = inspect.Parameter("tool_input", inspect.Parameter.POSITIONAL_ONLY), {}
    is_named = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    name = parameter.name if is_named else "tool_input"
    schema: Any = create_model(tool.name, **{name: (hints.get(name, str), ...)})  # type: ignore[call-overload]
    kept = {
        each: getattr(tool, each) for each in type(tool).model_fields if each in StructuredTool.model_fields
    }
    if not is_named:
        kept["func"] = tool.func and (lambda tool_input: function(tool_input))
    return StructuredTool(**{**kept, "args_schema": schema})


def _check_name(name: str) -> None:
    """Raise unless programs can call a function of this name and lose nothing by it."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ConfigurationError("tools", name, "a name that a Python function can have, e.g. search_web")
    is_taken = name in vars(builtins) or name in RESERVED
    if is_taken or name in sys.stdlib_module_names:
        what = (
            "programs use this name for something else"
            if is_taken
            else "it is that of a module, which programs import"
        )
        raise ConfigurationError("tools", name, f"another name for this tool: {what}")


def _guarded(tool: BaseTool) -> BaseTool:
    """Return a tool whose coroutine cannot end the event loop: `SystemExit` in a task would."""
    coroutine = getattr(tool, "coroutine", None)
    if not isinstance(tool, StructuredTool) or coroutine is None:
        return tool

    @functools.wraps(coroutine)  # LangChain reads the signature to find out what it has to inject.
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return await coroutine(*args, **kwargs)
        except (SystemExit, KeyboardInterrupt) as error:
            raise ToolException(f"It ended with {type(error).__name__}.") from error

    return tool.model_copy(update={"coroutine": guarded})

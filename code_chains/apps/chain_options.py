"""The options of a chain: one table for the commands of the terminal and the notebook, and the chain that they describe."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from code_chains.assembly.code_chain import CodeChain
    from code_chains.callbacks.budget import Budget
    from code_chains.chains.validate import Approve
    from code_chains.conversations.memory import ConversationMemory
    from code_chains.executors import Executor, Limits

CURATED = "<curated>"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _new_file(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    if path and os.path.lexists(path):
        raise click.UsageError(
            f"{path} exists, and no file is ever replaced. Name another one for the receipt."
        )
    return path


receipt_option = click.option(
    "--receipt",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    callback=_new_file,
    help="Write what the answer was computed from; `code-chains verify FILE` computes it again.",
)
approve_option = click.option(
    "--approve", is_flag=True, help="Show each program and ask for approval before it runs."
)
_MODEL_HELP = (
    "openai:gpt-5-mini, local, hf:OWNER/REPO:FILE, gguf:PATH, … [default: OpenAI if a key is set, else local]"
)


def _option(*names: str, **attributes: Any) -> Callable[..., Callable[[Any], Any]]:
    """Return an option that lacks its default."""
    return partial(click.option, *names, **attributes)


_MODELS_OPTION = click.option(
    "-m", "--model", "models", multiple=True, help=f"{_MODEL_HELP} Repeatable: the page offers a choice."
)
_TABLE: dict[str, Callable[..., Callable[[Any], Any]]] = {
    "model": _option("-m", "--model", help=_MODEL_HELP),
    "base_url": _option("--base-url", help="Base URL of an OpenAI-compatible server."),
    "fallback_models": _option(
        "--fallback-model",
        "fallback_models",
        multiple=True,
        metavar="MODEL",
        help="Model that tries while the verdict is failed, not of --base-url; repeatable.",
    ),
    "executor": _option(
        "--executor",
        help="strongest (sandbox, docker with its image, or wasm), sandbox, docker, podman, e2b, modal, daytona, wasm,"
        " monty, sql, or none (no isolation).",
    ),
    "network": _option(
        "--network",
        multiple=True,
        metavar="HOST:PORT",
        help="Address that programs may connect to, e.g. api.example.org:443; repeatable. Needs namespaces.",
    ),
    "checks": _option("--checks", help="Static checks before a run: standard, strict, none."),
    "max_attempts": _option(
        "--max-attempts",
        type=click.IntRange(1),
        help="Maximum number of attempts of a model.",
    ),
    "samples": _option(
        "--samples",
        type=click.IntRange(1),
        help="Programs to generate at once; the majority result wins.",
    ),
    "judge": _option("--judge", is_flag=True, help="Have the model judge the outcome."),
    "verify": _option(
        "--verify",
        is_flag=True,
        help="Solve it again by the same model; plausible if programs agree.",
    ),
    "verify_with": _option(
        "--verify-with",
        metavar="MODEL",
        help="Solve it again by another model; plausible if programs agree.",
    ),
    "schema_only": _option(
        "--schema-only",
        is_flag=True,
        help="Send the model names, sizes, columns and types; no rows, values or output.",
    ),
    "plan": _option("--plan", is_flag=True, help="Let the model split the task into steps."),
    "snippets": _option(
        "--snippets",
        is_flag=False,
        flag_value=CURATED,
        metavar="[FOLDER]",
        help="Give the model examples: of a folder, or without one those that come with the package.",
    ),
    "package": _option(
        "--package",
        metavar="NAME",
        help="Show the model how the functions of an installed package are called, e.g. acme_tax.",
    ),
    "language": _option("--language", help="Language of the answer, e.g. es; auto: as the question."),
    "budget": _option(
        "--budget",
        multiple=True,
        metavar="LIMIT=N",
        help="E.g. usd=0.05, tokens=9000, seconds=60; repeatable.",
    ),
    "seconds": _option("--seconds", help="Wall-clock limit of one run, in seconds."),
    "memory": _option("--memory", help="Memory limit of one run."),
}
"""The options of a chain, by the names of the parameters of `chain_spec`, which have their defaults."""


def chain_options(command: _Command) -> _Command:
    """Add the options of a chain, which `create_chain` takes."""
    return options_named(*_TABLE)(command)


def chains_options(command: _Command) -> _Command:
    """Add the options of chains with one model each, which `create_chains` takes."""
    return _MODELS_OPTION(options_named(*(name for name in _TABLE if name != "model"))(command))


def options_named(*names: str) -> Callable[[_Command], _Command]:
    """Return what adds some of the options of a chain, by the names of their parameters."""

    def add(command: _Command) -> _Command:
        defaults = inspect.signature(chain_spec).parameters
        for name in reversed(names):
            default = defaults[name].default if name in defaults else None
            shown = {"default": default, "show_default": True} if default else {}
            command = _TABLE[name](**shown)(command)
        return command

    return add


def create_chain(
    *,
    approve: Approve | None = None,
    budget: Budget | tuple[str, ...] | None,
    conversation_memory: ConversationMemory | bool = True,
    executor: Executor | str = "strongest",
    max_sessions: int | None = None,
    **options: Any,
) -> CodeChain:
    """Create the chain that the options describe, and optimise the process for it.

    With `max_sessions` its sandbox holds so many conversations at once.
    """
    import gc

    from code_chains.assembly.factory import create_code_chain
    from code_chains.assembly.specification import read_arguments
    from code_chains.chains.validate import ValidateChain

    spec = chain_spec(**options, executor=executor)
    arguments = read_arguments(spec)
    if not isinstance(executor, str):  # It has limits of its own.
        del arguments["limits"]
    elif max_sessions is not None:
        arguments["executor"] = _with_sessions(
            arguments["executor"], arguments.pop("limits", None), max_sessions
        )
    arguments["checks"] = ValidateChain(arguments["checks"], approve=approve)
    limits = parse_budget(budget) if isinstance(budget, tuple) else budget
    chain = create_code_chain(**arguments, budget=limits, memory=conversation_memory)
    chain.request_timeout = spec.get("timeout")
    gc.freeze()  # Exclude everything loaded so far from garbage collections, each of which would take 0.1 s.
    return chain


@contextlib.contextmanager
def create_chains(*, models: tuple[str, ...], **options: Any) -> Iterator[dict[str, CodeChain]]:
    """Create a chain for each model, by its name. They share executor and budget; leaving closes them."""
    from code_chains.models import default_model

    first, *others = dict.fromkeys(models or (None,))
    with create_chain(model=first, **options) as chain:
        chains = {_label(first or default_model()): chain}
        shared = {
            "executor": chain.executor,
            "budget": chain.budget,
            "conversation_memory": True,
            "network": (),
        }
        for name in others:
            if name is not None:
                chains[_label(name)] = create_chain(**{**options, **shared, "model": name})
        yield chains


def _label(model: str) -> str:
    """Return the name of a model for visitors, who need not know folders of this machine."""
    return f"gguf:{Path(model).name}" if model.startswith("gguf:") else model


def chain_spec(
    *,
    model: str | Runnable[Any, Any] | None = None,
    base_url: str | None = None,
    fallback_models: Sequence[str] = (),
    executor: Executor | str = "strongest",
    network: Sequence[str] = (),
    checks: str = "standard",
    max_attempts: int = 3,
    repeat_limits: bool = True,
    samples: int = 1,
    judge: bool = False,
    verify: bool = False,
    verify_with: str | None = None,
    schema_only: bool = False,
    plan: bool = False,
    snippets: str | None = None,
    package: str | None = None,
    language: str = "auto",
    seconds: float = 10.0,
    memory: str = "512M",
    cache: bool = False,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Return the specification of the chain that the options describe, as JSON if model and executor are names."""
    from code_chains.models import default_model

    check_model_is_named(model, base_url)
    solve: dict[str, Any] = {"type": "Repair", "attempts": max_attempts, "samples": samples}
    solve |= {} if repeat_limits else {"repeat_limits": False}
    if fallback_models:
        solve = {"type": "Escalate", "models": list(fallback_models), "solver": solve}
    if plan:
        solve = {"type": "Plan", "solver": solve}
    judges = [{"type": "Judge"}] if judge else []
    solved_again = [{"type": "Agreement", "model": verify_with}] if verify or verify_with else []
    return {
        "model": model or default_model(),
        "base_url": base_url,
        **({} if timeout is None else {"timeout": timeout}),
        **_sandbox(executor, network, {"seconds": seconds, "memory": memory}),
        "checks": checks,
        "solve": solve,
        "verify": [*judges, *solved_again],
        "data": {"type": "Data", "schema_only": schema_only},
        "snippets": _snippets(snippets, package),
        "language": language,
        "cache": cache,
    }


def _with_sessions(executor: Any, limits: Limits | None, count: int) -> Executor:
    from code_chains.executors import SandboxExecutor
    from code_chains.executors.registry import resolve_executor

    resolved = resolve_executor(executor, limits)
    if isinstance(resolved, SandboxExecutor):
        resolved.max_sessions = count
    return resolved


def _sandbox(executor: Executor | str, network: Sequence[str], limits: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments `executor` and `limits`; what may connect to addresses is the kernel sandbox."""
    if not network:
        return {"executor": executor, "limits": limits}
    if executor not in ("strongest", "sandbox"):
        raise click.BadParameter("only the executor sandbox opens addresses.", param_hint="--network")
    return {"executor": {"limits": limits, "network": list(network)}}


def check_model_is_named(model: object, base_url: str | None) -> None:
    """Raise a usage error if the default model, which is none of a server's, would be asked for at one."""
    if base_url and not model and "CODE_CHAINS_MODEL" not in os.environ:
        raise click.UsageError("Name the model that the server of --base-url offers, with --model.")


def _snippets(folder: str | None, package: str | None) -> str | bool:
    """Return the argument `snippets`."""
    from code_chains.assembly.arguments import PACKAGE_PREFIX

    if folder and package:
        raise click.UsageError(
            "Name --snippets or --package. For both, add examples to SnippetStore.from_package in Python."
        )
    if package:
        return PACKAGE_PREFIX + package
    if folder and folder != CURATED and not Path(folder).expanduser().exists():
        raise click.BadParameter(
            f"the folder {folder!r} does not exist. If it is the question, put it before --snippets.",
            param_hint="--snippets",
        )
    return True if folder == CURATED else folder or False


def parse_budget(limits: tuple[str, ...]) -> Budget | None:
    """Parse limits of the form `NAME=N`."""
    from code_chains.callbacks.budget import INTEGER_LIMITS, LIMITS, Budget

    values: dict[str, Any] = {}
    for limit in limits:
        name, _, number = limit.partition("=")
        if name not in LIMITS:
            raise click.BadParameter(
                f"unknown limit {name!r}; choose from {', '.join(LIMITS)}", param_hint="--budget"
            )
        try:
            values[name] = int(number) if name in INTEGER_LIMITS else float(number)
        except ValueError:
            raise click.BadParameter(
                f"{limit!r} has no number, as in {name}=5", param_hint="--budget"
            ) from None
    return Budget(**values) if values else None

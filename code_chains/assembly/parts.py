"""What solvers and verifiers build their chains from: model, executor, checks and tools of one assembled chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.language_models import LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.chains.base import Chain
from code_chains.chains.ranks import Rank, rank_of
from code_chains.chains.validate import ValidateChain
from code_chains.errors import ConfigurationError
from code_chains.executors import Executor
from code_chains.models import for_code, resolve_model
from code_chains.models.sampling import can_be_sampled, inner_model
from code_chains.toolbox import Toolbox

if TYPE_CHECKING:
    from code_chains.chains.attempt import AttemptChain
    from code_chains.chains.evaluate import EvaluateChain
    from code_chains.chains.execute import ExecuteChain
    from code_chains.chains.generate import GenerateChain
    from code_chains.models.weights import Weights
    from code_chains.retrieval.store import SnippetStore

Model = Runnable[LanguageModelInput, Any]


class Verifying(Protocol):
    """What parts know of the values of `verify=`; see `code_chains.assembly.verifiers`."""

    @property
    def solves_again(self) -> bool:
        """Whether it solves a question again."""

    def build(self, parts: Parts) -> Chain | None:
        """Return what verifies an attempt."""

    def around(self, solve: Chain, parts: Parts) -> Chain:
        """Return what verifies all attempts together."""


@dataclass
class Parts:
    """What solvers and verifiers build their chains from.

    Attributes:
        given: The model that writes programs, as it was given.
        executor: Where programs run.
        validate: The static checks.
        tools: What programs may call; None without tools.
        verifiers: The values of `verify=`, in order.
        generate_options: `prompt` and `instructions` of the chains that write programs.
        sanity_checks: Whether outcomes that nothing verifies must pass sanity checks; see `EvaluateChain`.
        schema_only: Whether models are kept from data.
        words: Whether a reply in words may be an answer.
        starts_model: Whether an embedded model loads its weights at once; otherwise its first call does.
        models: The models that write programs, by the names in the records of attempts.
        references: Where to look up how functions are called that a failed program names.
    """

    given: str | Model
    executor: Executor
    validate: ValidateChain
    tools: Toolbox | None = None
    verifiers: Sequence[Verifying] = ()
    generate_options: Mapping[str, str] = field(default_factory=dict)
    sanity_checks: bool = False
    schema_only: bool = False
    words: bool = True
    starts_model: bool = True
    models: dict[str, Model] = field(default_factory=dict)
    references: SnippetStore | None = None
    _resolved: dict[str, Model] = field(default_factory=dict, repr=False)

    @cached_property
    def model(self) -> Model:
        """The model that writes programs, loaded when it is first asked for: what cannot work is found out before."""
        return resolve_model(self.given, start=self.starts_model)

    def resolve(self, argument: str, model: str | Model | None) -> Model:
        """Return the chat model that an argument stands for, loaded once; the chain's model for None.

        Raises:
            ConfigurationError: There is none; the message names the argument.
        """
        if model is None:
            return self.model
        if not isinstance(model, str):
            return resolve_model(model)
        if model not in self._resolved:
            try:
                self._resolved[model] = resolve_model(model, start=False)
            except ConfigurationError as error:
                raise ConfigurationError(argument, model, error.remedy) from error
        return self._resolved[model]

    @property
    def repeats_effects(self) -> bool:
        """Whether there is another attempt after a program that called a tool with effects, and failed."""
        return self.tools is not None and self.tools.repeats_effects

    def name_model(self, given: str | Model, model: Model) -> str:
        """Add a model to those that write programs, under a name that no other one has, and return that.

        Args:
            given: The model as the user named it.
            model: What it stands for; `local` is recorded as the model that it is on this machine.
        """
        name = self.name_of(given, model)
        if name in self.models:
            name = f"{name} ({len(self.models) + 1})"
        self.models[name] = model
        return name

    def name_of(self, given: str | Model, model: Model) -> str:
        """Return the name of a model in records; see `name_model`."""
        is_named = isinstance(given, str) and given != "local"
        name = str(given if is_named else getattr(model, "model_name", None) or type(model).__name__)
        # Records must not learn the folders of this machine.
        return f"gguf:{Path(name).name}" if name.startswith("gguf:") else name

    # -- chains ----------------------------------------------------------------------------------------------

    def generate(self, model: Model) -> GenerateChain:
        """Return the chain that writes programs in the executor's language."""
        from code_chains.chains.generate import GENERATE_PROMPTS, GenerateChain

        language, guidance = self.executor.language, self.executor.guidance
        rules = f"\n- {guidance}" if guidance else ""
        options: dict[str, Any] = {"prompt": GENERATE_PROMPTS[language] + rules, **self.generate_options}
        if self.tools is not None:
            options["tools"] = self.tools.format_for_model()
        if language == "python":
            return GenerateChain(model=for_code(model), **options)
        return GenerateChain(model=model, examples=(), language=language, **options)

    def write_cell(self, model: Model) -> GenerateChain:
        """Return the chain that writes the cells of an iteration."""
        from code_chains.chains.generate import GENERATE_PROMPT
        from code_chains.chains.iterate import ITERATE_EXAMPLES, ITERATE_PROMPT

        write = self.generate(model)
        prompt = self.generate_options.get("prompt") or write.prompt.replace(GENERATE_PROMPT, ITERATE_PROMPT)
        return write.model_copy(update={"name": "write_cell", "prompt": prompt, "examples": ITERATE_EXAMPLES})

    def execute(self) -> ExecuteChain:
        """Return the chain that runs programs."""
        from code_chains.chains.execute import ExecuteChain

        return ExecuteChain(self.executor, tools=self.tools, references=self.references)

    def evaluate(self, *, asks_verifiers: bool = True) -> EvaluateChain:
        """Return the chain that evaluates outcomes."""
        from code_chains.chains.evaluate import EvaluateChain

        return EvaluateChain(
            executor=self.executor,
            verifiers=self.chains_of_verifiers() if asks_verifiers else (),
            tools=self.tools,
            sanity_checks=self.sanity_checks,
            words=self.words,
        )

    def attempt(self, write: GenerateChain, *, asks_verifiers: bool = True) -> AttemptChain:
        """Return the chain that makes one attempt: writes, validates, executes and evaluates a program."""
        from code_chains.chains.attempt import OUTCOME_KEYS, AttemptChain

        evaluate = self.evaluate(asks_verifiers=asks_verifiers)
        return AttemptChain(
            chains=[write, self.validate, self.execute(), evaluate],
            input_variables=["query"],
            output_variables=list(OUTCOME_KEYS),
            autofix=self.executor.language == "python",
        )

    def chains_of_verifiers(self, after: Verifying | None = None) -> list[Chain]:
        """Return the chains of the verifiers before the first that solves again, or between one of these and the next.

        Those that only doubt are among the first wherever they stand, and never asked again.
        """
        chains = [
            (turn, chain)
            for turn, verifiers in enumerate(self._turns)
            for verifier in verifiers
            if (chain := verifier.build(self)) is not None
        ]
        # By identity, as two verifiers may be equal.
        wanted = next((turn for turn, each in enumerate(self._turns) if each and each[0] is after), 0)
        return [chain for turn, chain in chains if wanted == (0 if rank_of(chain) is Rank.DOUBT else turn)]

    @property
    def _turns(self) -> list[list[Verifying]]:
        """The verifiers, in a list of its own from each that solves again."""
        turns = list[list[Verifying]]([[]])
        for verifier in self.verifiers:
            if verifier.solves_again:
                turns.append([])
            turns[-1].append(verifier)
        return turns

    def verified(self, solve: Chain) -> Chain:
        """Return a chain that solves questions, within those that solve them again."""
        for verifier in self.verifiers:
            solve = verifier.around(solve, self)
        return solve


def accepts_images(model: Model) -> bool:
    """Return whether the profile of a model says that it accepts images."""
    profile = getattr(inner_model(model), "profile", None) or {}
    return bool(profile.get("image_inputs"))


def embedded(model: Model) -> Weights | None:
    """Return which embedded model this is; None for others."""
    name = str(getattr(inner_model(model), "model_name", ""))
    if not name.startswith("local:"):
        return None
    from code_chains.models.weights import CATALOGUE

    return CATALOGUE.get(name)


def restarts_on_failed_tests(model: Model) -> bool:
    """Return whether another sample of a model is worth more than a repair of a program that failed tests."""
    weights = embedded(model)
    return weights is not None and not weights.repairs_after_tests and can_be_sampled(model)

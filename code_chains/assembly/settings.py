"""Values of `create_code_chain` that say more than a plain one: snippets, data, language and prompts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from code_chains.errors import ConfigurationError, check_bool

SnippetsSource = bool | str | Path | VectorStore | Runnable[str, list[Document]]


@dataclass(frozen=True)
class Data:
    """What models are told of files, variables and pasted tables.

    Attributes:
        profile: Whether the models are told how each file is read and what is in it, found out by a program
            that runs in the executor first; False for only names, sizes and first lines.
        paste: Whether tables, JSON and lists of numbers in the text of a question are offered to its program as files
            and variables, with profiles; `pasted` in the result says what was found.
        schema_only: Whether models are sent only the schemas of files, variables and earlier runs (names, sizes, columns,
            types, kinds of errors), and no rows, values or output. The answer is then the program's output.
    """

    profile: bool = True
    paste: bool = True
    schema_only: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            check_bool(f"Data.{each.name}", getattr(self, each.name))


@dataclass(frozen=True)
class Snippets:
    """Examples that the model is shown.

    Attributes:
        source: True for the curated ones of this package, which `local:0.5b` is not shown, as it copies them; a folder of
            your own, `"package:acme_tax"` for the functions of an installed package, a `SnippetStore`, or any LangChain
            vector store or retriever.
        learn: Whether programs that tests have verified are added to them; only to a folder or a `SnippetStore`.
    """

    source: SnippetsSource = True
    learn: bool = False

    def __post_init__(self) -> None:
        check_bool("Snippets.learn", self.learn)


@dataclass(frozen=True)
class Language:
    """The language of answers and labels of plots.

    Attributes:
        name: `"auto"` for the question's language, or e.g. `"es"`.
        translate: Whether a model translates questions into English first, for models that know it best.
    """

    name: str = "auto"
    translate: bool = False

    def __post_init__(self) -> None:
        check_bool("Language.translate", self.translate)


@dataclass(frozen=True)
class Prompts:
    """What models are told besides the question.

    Attributes:
        instructions: Rules of your domain, for the model that writes programs and the one that phrases answers.
        generate: The system message in place of that of `GenerateChain`; None to keep it.
        interpret: The system message in place of that of `InterpretChain`; None to keep it.
        words: Whether a question that needs no program, such as a greeting, may be answered in words, and whether a program
            may be handed over that only defines something: both are `unverified`, and given twice by the model.
    """

    instructions: str = ""
    generate: str | None = None
    interpret: str | None = None
    words: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.instructions, str):
            raise ConfigurationError("instructions", self.instructions, "text or Prompts(…)")
        for name in ("generate", "interpret"):
            if not isinstance(getattr(self, name), str | None):
                raise ConfigurationError(f"Prompts.{name}", getattr(self, name), "text")

        check_bool("Prompts.words", self.words)

    def options(self, chain: str) -> dict[str, str]:
        """Return the arguments of a chain, `"generate"` or `"interpret"`."""
        options = {"instructions": self.instructions.strip()}
        prompt = getattr(self, chain)
        return options if prompt is None else {**options, "prompt": prompt}

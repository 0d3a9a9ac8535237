"""From a name to a chat model."""

from __future__ import annotations

import os
import re
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.errors import CodeChainsError, ConfigurationError

__all__ = ["default_model", "for_code", "resolve_model"]

_EXAMPLES = '"openai:gpt-5-mini", "local", "gguf:PATH", or a chat model object'


def default_model() -> str:
    """The model to use where none is named: `CODE_CHAINS_MODEL`, OpenAI's where there is a key, else the embedded one."""
    if chosen := os.environ.get("CODE_CHAINS_MODEL"):
        return chosen
    return "openai:gpt-5-mini" if os.environ.get("OPENAI_API_KEY") else "local"


def resolve_model(
    model: str | Runnable[LanguageModelInput, Any], *, base_url: str | None = None, **options: Any
) -> Runnable[LanguageModelInput, Any]:
    """Make a chat model of a name; a chat model, or a Runnable around one, is taken as it is.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` knows; `"local"`, `"local:1.5b"` or
            `"gguf:PATH"` for the embedded runtime; or a chat model.
        base_url: Address of an OpenAI-compatible server (Ollama, vLLM, llama.cpp), e.g. `http://localhost:11434/v1`.
        **options: Passed on to the chat model, e.g. `temperature=0`.

    Raises:
        ConfigurationError: There is no such model, its package is not installed, or its key is missing.
        WeightsError: The embedded model cannot be fetched or loaded.
    """
    if isinstance(model, Runnable):
        if base_url or options:
            named = sorted([*options, *(["base_url"] if base_url else [])])
            raise ConfigurationError(
                "model", type(model).__name__, f"{', '.join(named)} to the chat model itself, or a name"
            )
        return model
    if not isinstance(model, str) or not model.strip():
        raise ConfigurationError("model", model, _EXAMPLES)
    if base_url:
        return _at(base_url, model, options)
    if model == "local" or model.startswith(("local:", "gguf:")):
        from code_chains.local import load_local

        return load_local(model, **options)
    return _named(model, options)


def for_code(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    """The model as it is asked for programs: an embedded one is held to reply with nothing else."""
    return cast("Runnable[LanguageModelInput, Any]", model.for_code()) if hasattr(model, "for_code") else model


def _at(base_url: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    if not base_url.startswith(("http://", "https://")):
        raise ConfigurationError(
            "base_url", re.sub(r"//.*@|^[^/]*@", "***@", base_url), 'an address such as "http://localhost:11434/v1"'
        )
    # Servers at home ask for no key, but the client insists on one; and it asks them for no usage unless told to.
    defaults = {"api_key": os.environ.get("OPENAI_API_KEY") or "none", "stream_usage": True}
    return ChatOpenAI(model=model.removeprefix("openai:"), base_url=base_url, **{**defaults, **options})


def _named(model: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        return cast("BaseChatModel", init_chat_model(model, **options))
    except CodeChainsError:
        raise
    except ImportError as error:
        raise ConfigurationError("model", model, f"it after installing its package ({error})") from error
    except Exception as error:
        if "api_key" in str(error).lower() or "api key" in str(error).lower():
            raise ConfigurationError(
                "model", model, 'it with its API key in the environment (e.g. OPENAI_API_KEY), or model="local"'
            ) from error
        raise ConfigurationError("model", model, f"{_EXAMPLES} ({error})") from error

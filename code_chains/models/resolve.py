"""Resolution of a name to a chat model."""

from __future__ import annotations

import os
import re
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import Runnable

from code_chains.callbacks.proxies import invalid_proxy
from code_chains.errors import CodeChainsError, ConfigurationError

_TIMEOUT_S = 300.0
"""How long a server of one's own may be silent: it may have to load a model first."""
_EXAMPLES = '"openai:gpt-5-mini", "local", "hf:OWNER/REPO:FILE", "gguf:PATH", or a chat model object'


def default_model() -> str:
    """Return the default model: `CODE_CHAINS_MODEL`, else OpenAI's if there is a key, else the embedded one."""
    if name := os.environ.get("CODE_CHAINS_MODEL"):
        return name
    return "openai:gpt-5-mini" if os.environ.get("OPENAI_API_KEY") else "local"


def is_embedded(name: str) -> bool:
    """Return whether a model of this name runs in this process."""
    return name == "local" or name.startswith(("local:", "hf:", "gguf:"))


def resolve_model(
    model: str | Runnable[LanguageModelInput, Any],
    *,
    base_url: str | None = None,
    start: bool = True,
    **options: Any,
) -> Runnable[LanguageModelInput, Any]:
    """Resolve a name to a chat model; return a chat model, or a Runnable around one, unchanged.

    Args:
        model: `"openai:gpt-5-mini"` or any name that LangChain's `init_chat_model` accepts; `"local"`,
            `"local:1.5b"`, `"hf:OWNER/REPO:FILE"` or `"gguf:PATH"` for the embedded runtime; or a chat model.
        base_url: Base URL of an OpenAI-compatible server (Ollama, vLLM, llama.cpp), e.g.
            `http://localhost:11434/v1`.
        start: Whether an embedded model loads its weights now; otherwise its first call does.
        **options: Passed to the chat model, e.g. `temperature=0`.

    Raises:
        ConfigurationError: There is no such model, its package is not installed, or its key is missing.
        WeightsError: The embedded model cannot be downloaded or loaded.
    """
    if isinstance(model, Runnable):
        if base_url or options:
            arguments = sorted([*options, *(["base_url"] if base_url else [])])
            remedy = f"a name, or pass {', '.join(arguments)} to the chat model itself"
            raise ConfigurationError("model", type(model).__name__, remedy)
        return model
    if not isinstance(model, str) or not model.strip():
        raise ConfigurationError("model", model, _EXAMPLES)
    if base_url:
        return _connect(base_url, model, options)
    if is_embedded(model):
        from code_chains.models.local import load_local

        return load_local(model, start=start, **options)
    return _initialize(model, options)


def for_code(model: Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    """Return the model for writing programs; an embedded model is restricted to them by a grammar."""
    return (
        cast("Runnable[LanguageModelInput, Any]", model.for_code()) if hasattr(model, "for_code") else model
    )


def _connect(base_url: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    if not base_url.startswith(("http://", "https://")):
        raise ConfigurationError(
            "base_url",
            re.sub(r"//.*@|^[^/]*@", "***@", base_url),
            'an address such as "http://localhost:11434/v1"',
        )
    # Local servers need no key, but the client requires one; usage is only reported on request.
    defaults = {
        "api_key": os.environ.get("OPENAI_API_KEY") or "none",
        "stream_usage": True,
        "timeout": _TIMEOUT_S,
        "max_retries": 1,
    }
    name = model.removeprefix("openai:").removeprefix("ollama:")
    try:
        return ChatOpenAI(model=name, base_url=base_url, **{**defaults, **options})
    except Exception as error:
        if proxy_error := invalid_proxy():
            raise proxy_error from error
        raise


def _initialize(model: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        return cast("BaseChatModel", init_chat_model(model, **options))
    except CodeChainsError:
        raise
    except Exception as error:
        raise invalid_proxy() or _invalid_model(model, error) from error


def _invalid_model(model: str, error: Exception) -> ConfigurationError:
    """Return the error of a model whose client cannot be built."""
    if isinstance(error, ImportError):
        return ConfigurationError("model", model, f"a model whose package is installed ({error})")
    if isinstance(error, AttributeError):
        # Of providers without a package, LangChain looks for a module in its community package, which may lack it.
        provider = model.partition(":")[0]
        remedy = (
            f"a model whose package is installed: pip install langchain-{provider}; or for a server with the protocol of"
            " OpenAI, its model's name with base_url="
        )
        return ConfigurationError("model", model, remedy)
    if "api_key" in str(error).lower() or "api key" in str(error).lower():
        remedy = 'a model whose API key is in the environment (e.g. OPENAI_API_KEY), or "local"'
        return ConfigurationError("model", model, remedy)
    return ConfigurationError("model", model, f"{_EXAMPLES} ({error})")

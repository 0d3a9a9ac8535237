"""A model on your own server: Ollama, vLLM, llama.cpp or anything else that is OpenAI-compatible.

`python examples/own_server.py --model qwen2.5-coder --base-url http://localhost:11434/v1` asks Ollama; without an address it
is the embedded model, which is such a server, too.
"""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain
from code_chains.models import resolve_model


def main(model: str | BaseChatModel = "local", base_url: str | None = None) -> None:
    """Ask, and print which model was used for how many tokens."""
    with create_code_chain(resolve_model(model, base_url=base_url)) as chain:
        result = chain.invoke("What is the sum of the numbers from 1 to 5?")
    print(result["answer"])
    for name, tokens in result["usage"].by_model.items():
        print(f"{name}: {tokens['input_tokens']} tokens read, {tokens['output_tokens']} written")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    options.add_argument("--base-url")
    main(**vars(options.parse_args()))

"""Watch the stages: each as it begins, the tokens of the model as they stream, and how it ended."""

import argparse
import asyncio

from langchain_core.language_models import BaseChatModel

from code_chains import CodeChain, create_code_chain

STAGES = ("generate", "validate", "execute", "evaluate", "interpret")


async def watch(chain: CodeChain, question: str) -> None:
    """Print LangChain's own events as they arrive."""
    async for event in chain.astream_events({"query": question}, version="v2"):
        kind, name, data = event["event"], event["name"], event["data"]
        if kind == "on_chain_start" and name in STAGES:
            print(f"\n[{name}]")
        elif kind == "on_chat_model_stream":
            print(data["chunk"].text, end="", flush=True)
        elif kind == "on_chain_end" and name == "execute":
            print(data["output"]["execution"].summary, data["output"]["output"])


def main(model: str | BaseChatModel = "local") -> None:
    """Ask and watch."""
    with create_code_chain(model) as chain:
        asyncio.run(watch(chain, "Which numbers from 1 to 30 can be divided by 7?"))
    print()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))

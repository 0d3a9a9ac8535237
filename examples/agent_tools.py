"""An agent whose code calls its tools in a loop: one call of the model for thirty customers, not thirty."""

import argparse

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from code_chains import create_python_tool

READ_ONLY = {"read_only": True}
QUESTION = "What is the total of the open orders of all customers, in dollars?"


@tool
def list_customers() -> list[int]:
    """Return the numbers of all customers."""
    return list(range(1, 31))


@tool
def open_orders(customer: int) -> list[dict[str, float | str]]:
    """Return the open orders of a customer: their `total` and its `currency`."""
    return [{"total": 10.0 * customer, "currency": "EUR" if customer % 2 else "USD"}]


@tool
def exchange_rate(currency: str) -> float:
    """Return the dollars for one unit of a currency."""
    return {"EUR": 1.1, "USD": 1.0}[currency]


def main(model: str | BaseChatModel = "openai:gpt-5-mini") -> None:
    """Ask the agent, and count what it took."""
    tools = [list_customers, open_orders, exchange_rate]
    for each in tools:
        each.metadata = READ_ONLY
    agent = create_agent(model, [create_python_tool(tools=tools)])
    messages = agent.invoke({"messages": [HumanMessage(QUESTION)]})["messages"]
    calls = [message for message in messages if message.type == "ai"]
    for message in messages:
        if message.type == "tool":
            print(
                f"The program called {len(message.artifact['execution']['tool_calls'])} tools: {message.text}"
            )
    print(f"{len(calls)} model calls: {messages[-1].text}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="openai:gpt-5-mini")
    main(**vars(options.parse_args()))

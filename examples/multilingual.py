"""The same question in four languages: each answer is in the language of its question, and the numbers agree."""

import argparse

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain

QUESTIONS = (
    "What is the average of 4, 8 and 15?",
    "¿Cuál es el promedio de 4, 8 y 15?",
    "Was ist der Durchschnitt von 4, 8 und 15?",
    "4、8、15の平均はいくつですか?",
)


def main(model: str | BaseChatModel = "local") -> None:
    """Ask four times; the language is detected without a model."""
    with create_code_chain(model) as chain:
        for question in QUESTIONS:
            result = chain.invoke(question)
            print(f"[{result['answer_language']}] {question}\n  {result['output']}\n  {result['answer']}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))

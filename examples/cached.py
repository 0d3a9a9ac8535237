"""The same question costs nothing the second time, in this process or the next."""

from tempfile import TemporaryDirectory

from code_chains import create_code_chain

with TemporaryDirectory() as folder, create_code_chain("local", cache=f"{folder}/answers.sqlite") as chain:
    for _ in range(2):
        result = chain.invoke("What is the sum of the numbers from 1 to 5?")
        print(result["answer"], "(kept)" if result["cached"] else "(asked)", result["usage"].model_calls, "model calls")

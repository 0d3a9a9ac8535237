"""A task in steps: each one is written, run and judged in the same session, and sees what was done before."""

import sys

from code_chains import Budget, create_code_chain

model = sys.argv[1] if len(sys.argv) > 1 else "local"
task = "Create a CSV with sample data, then read it and calculate statistics."

with create_code_chain(model, plan="auto", budget=Budget(model_calls=8)) as chain:
    result = chain.invoke({"query": task})

for number, step in enumerate(result["steps"], 1):
    tries = [attempt for attempt in result["attempts"] if attempt.step in (number, None)]
    print(f"{number}. {step} ({len(tries)} attempts)")
print(result["code"], result["output"], result["answer"], sep="\n\n")
print(f"{result['verdict'].status}; {result['usage'].model_calls} model calls; ended because: {result['stop_reason']}")

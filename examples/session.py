"""A session keeps variables and files between runs; a failure leaves no trace, and checkpoints can be restored."""

from code_chains import Limits, SandboxExecutor


def main() -> None:
    """Fail, restore a checkpoint, plot."""
    with SandboxExecutor(limits=Limits(seconds=10)) as sandbox, sandbox.session() as session:
        session.run("prices = [3.5, 4.0, 12.5]")
        failed = session.run("prices.append(0.5)\nprices.append(1 / 0)")
        print(failed.error)
        print("Still as before:", session.run("prices").result)

        session.checkpoint("three prices")
        session.run("prices.clear()")
        session.restore("three prices")

        done = session.run(
            "import matplotlib.pyplot as plt\nplt.bar(range(len(prices)), prices)\nround(sum(prices), 2)"
        )
        print("Sum:", done.result, "with", [artifact.name for artifact in done.artifacts])


if __name__ == "__main__":
    main()

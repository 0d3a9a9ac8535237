"""The sandbox on its own: results, errors and limits are values; isolation is proven from inside."""

from code_chains import Limits, SandboxExecutor


def main() -> None:
    """Run three programs."""
    with SandboxExecutor(limits=Limits(seconds=2)) as sandbox:
        done = sandbox.run("import statistics\nstatistics.mean(values)", variables={"values": [1, 2, 6]})
        print(done.status, done.output, done.isolation.level if done.isolation else None)
        print(sandbox.run("open('/etc/shadow')").summary)
        print(sandbox.run("while True: pass").summary)


if __name__ == "__main__":
    main()

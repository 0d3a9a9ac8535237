"""The sandbox as an execution policy of LangChain's shell middleware, in real agents and in a session of its own."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ShellToolMiddleware
from langchain.agents.middleware._execution import SHELL_TEMP_PREFIX
from langchain.agents.middleware.shell_tool import ShellSession
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from code_chains.agents import SandboxExecutionPolicy, shell
from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors import Limits
from code_chains.state import Execution
from code_chains.testing import ScriptedModel
from tests.attacks import test_escapes
from tests.conftest import at_rest, descendants, soon

BASH = ("/bin/bash",)
NEW = "This is a new shell"
WITH_OTHER_LAUNCHERS = (
    "import sys; sys.path.append({!r})\n"
    "from code_chains.executors.sandbox.launchers import LAUNCHERS\n"
    "LAUNCHERS.update(dict.fromkeys(LAUNCHERS, OTHER))\n"
    "from code_chains.agents.relay import main; main({})"
)

# LangChain's middleware closes no pipes, and does not wait for a shell that it has killed.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=SHELL_TEMP_PREFIX) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def session() -> Iterator[ShellSession]:
    """A shell for the tests that leave it as it was."""
    with tempfile.TemporaryDirectory(prefix=SHELL_TEMP_PREFIX) as folder:
        session = ShellSession(Path(folder), SandboxExecutionPolicy(), BASH, {})
        session.start()
        yield session
        stop(session)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Let the warnings of this test be raised in no other one."""
    yield
    gc.collect()


def stop(session: ShellSession) -> None:
    """Stop a shell, and close the pipes that the middleware leaves open."""
    process = session._process
    session.stop(2)
    for thread in (session._stdout_thread, session._stderr_thread):
        assert thread
        thread.join()
    for pipe in (process.stdout, process.stderr) if process else ():
        if pipe:
            pipe.close()


def run(session: ShellSession, command: str, timeout: float = 20) -> str:
    return session.execute(command, timeout=timeout).output


def agent_with(policy: SandboxExecutionPolicy, *commands: str | dict[str, Any], **options: Any) -> Any:
    def script(messages: list[BaseMessage]) -> str | AIMessage:
        done = sum(message.type == "tool" for message in messages)
        if done == len(commands):
            return "Done."
        each = commands[done]
        arguments = {"command": each} if isinstance(each, str) else each
        call = {"name": "shell", "args": arguments, "id": str(done), "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    middleware = ShellToolMiddleware(execution_policy=policy, **options)
    return create_agent(ScriptedModel(script), middleware=[middleware])


def shown(state: dict[str, Any]) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


ASKED = {"messages": [HumanMessage("Go.")]}


# -- what an agent sees ----------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_commands_of_an_agent_share_a_shell_which_ends_with_it() -> None:
    before = at_rest()
    policy = SandboxExecutionPolicy()
    agent = agent_with(
        policy,
        "mkdir a; cd a; n=41",
        "echo $((n + 1)); pwd",
        "echo wrong >&2; exit_code() { return 3; }; exit_code",
    )
    assert shown(agent.invoke(ASKED)) == ["<no output>", "42\n/box/a\n", "[stderr] wrong\n\nExit code: 3"]
    assert soon(lambda: at_rest() <= before)


async def test_an_agent_may_run_on_an_event_loop() -> None:
    agent = agent_with(SandboxExecutionPolicy(), "echo $((6 * 7))")
    assert shown(await agent.ainvoke(ASKED)) == ["42\n"]


def test_agents_at_once_have_shells_of_their_own() -> None:
    agent = agent_with(SandboxExecutionPolicy(), "touch $RANDOM", "sleep 0.3; ls | wc -l")
    with ThreadPoolExecutor(3) as pool:
        assert [shown(state)[1] for state in pool.map(agent.invoke, [ASKED] * 3)] == ["1\n"] * 3


def test_startup_commands_and_restarts_are_those_of_the_middleware() -> None:
    commands = ("echo $n; touch made", {"restart": True}, "echo $n; ls")
    agent = agent_with(SandboxExecutionPolicy(), *commands, startup_commands="n=7")
    assert shown(agent.invoke(ASKED)) == ["7\n", "Shell session restarted.", "7\n"]


def test_a_command_that_takes_too_long_ends_the_shell_and_the_next_one_is_told() -> None:
    policy = SandboxExecutionPolicy(command_timeout=1, termination_timeout=0.2)
    first, second, third = shown(agent_with(policy, "touch made; sleep 60", "ls", "echo on").invoke(ASKED))
    assert "timed out after 1.0 seconds" in first
    assert (NEW in second, "made" in second, third) == (True, False, "on\n")


def test_variables_of_the_middleware_are_there_and_those_of_the_application_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_APP", "hidden")
    agent = agent_with(SandboxExecutionPolicy(), "env; cat /proc/*/environ; echo", env={"GIVEN": "for é"})
    [output] = shown(agent.invoke(ASKED))
    assert ("GIVEN=for é" in output, "SECRET_OF_THE_APP" in output) == (True, False)


def test_output_without_an_end_of_line_is_complete() -> None:
    agent = agent_with(
        SandboxExecutionPolicy(command_timeout=5),
        "printf one",
        "head -c 100000 /dev/zero | tr '\\0' x",
        "pwd",
    )
    one, many, folder = shown(agent.invoke(ASKED))
    assert (one.strip(), len(many.strip()), folder) == ("one", 100_000, "/box\n")


def test_files_are_in_the_working_directory(sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sales.parent)
    agent = agent_with(SandboxExecutionPolicy(files=[Path("sales.csv")]), "wc -l < sales.csv; echo > new; ls")
    assert shown(agent.invoke(ASKED)) == ["3\nnew\nsales.csv\n"]
    assert not Path("new").exists()


# -- the sandbox ---------------------------------------------------------------------------------------------------------


def test_a_shell_sees_nothing_of_the_machine_but_its_programs(session: ShellSession, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden")
    looked = run(
        session, f"cat {tmp_path}/secret; cat /etc/shadow; touch /usr/bin/x; ls /proc | grep -c '^[0-9]'"
    )
    assert looked.count("No such file") == 2
    assert "Read-only file system" in looked or "Permission denied" in looked
    assert int(looked.splitlines()[[line.isdigit() for line in looked.splitlines()].index(True)]) < 10


@pytest.mark.smoke
def test_a_shell_has_no_network(session: ShellSession) -> None:
    told = run(session, "exec 3<>/dev/tcp/127.0.0.1/22; getent hosts example.org; ls /sys/class/net")
    assert "Connection refused" in told or "unreachable" in told or "Operation not permitted" in told
    assert "example.org" not in told


@pytest.mark.smoke
def test_the_layers_of_the_executor_are_in_force(session: ShellSession) -> None:
    status = run(session, "grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd):' /proc/self/status")
    values = dict(line.split(":\t") for line in status.splitlines())
    assert (values["Seccomp"], values["NoNewPrivs"]) == ("2", "1")
    assert int(values["CapEff"], 16) == 0
    assert "Operation not permitted" in run(session, "unshare -U true")


@pytest.mark.soak
@pytest.mark.parametrize("program", test_escapes.held_beside_commands())
def test_no_known_technique_escapes_through_a_shell(
    host: test_escapes.Host, workspace: Path, program: str
) -> None:
    told = f"import json\nhost = json.loads({json.dumps(host.told())!r})\n"
    source = workspace / "program.py"
    source.write_text(told + test_escapes.PRELUDE + program)
    policy = SandboxExecutionPolicy(files=[source], max_output_lines=10_000)
    session = ShellSession(workspace, policy, BASH, {})
    session.start()
    result = session.execute("timeout -s KILL 2 python3 program.py", timeout=5)
    stop(session)
    assert [line for line in result.output.splitlines() if "GRANTED" in line] == []
    assert host.harm(Execution("ok", stdout=result.output)) == []


@pytest.mark.parametrize("other", ["lambda spec: ['false']", "LAUNCHERS['none']"])
def test_without_the_required_isolation_there_is_no_shell(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(shell, "START_CODE", WITH_OTHER_LAUNCHERS.replace("OTHER", other))
    before = descendants()
    with pytest.raises(IsolationError):
        SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=BASH)
    assert soon(lambda: descendants() <= before)


# -- limits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bomb", ["bomb() { bomb | bomb & }; bomb; sleep 5", "x=$(head -c 400M /dev/urandom | base64)"]
)
def test_a_shell_that_exceeds_its_limits_ends_and_the_next_one_says_so(workspace: Path, bomb: str) -> None:
    policy = SandboxExecutionPolicy(limits=Limits(memory="256M", processes=32), termination_timeout=0.2)
    session = ShellSession(workspace, policy, BASH, {})
    session.start()
    assert session.execute(bomb, timeout=3).timed_out
    assert NEW in run(session, "echo on")
    stop(session)


def test_a_full_disk_fails_the_command_alone(workspace: Path) -> None:
    session = ShellSession(workspace, SandboxExecutionPolicy(limits=Limits(disk="4M")), BASH, {})
    session.start()
    assert "No space left" in run(session, "for n in 1 2; do head -c 3M /dev/urandom > $n; done")
    assert run(session, "rm 1 2; echo on > small; cat small") == "on\n"
    stop(session)


def test_long_output_does_not_stay_in_the_memory_of_the_relay(workspace: Path) -> None:
    def peak() -> int:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    process = SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=BASH)
    with process:
        assert process.stdin
        assert process.stdout
        before = peak()
        process.stdin.write("yes | head -c 60M\n")
        process.stdin.flush()
        left = 60 << 20
        while left > 0:
            left -= len(process.stdout.read(1 << 16))
        assert peak() - before < 30 << 20
        process.kill()


def test_much_input_and_any_bytes_arrive(session: ShellSession) -> None:
    text = "é€" * 100_000
    result = session.execute(f"wc -c <<'END'\n{text}\nEND", timeout=20)
    assert result.output.split() == [str(len(text.encode()) + 1)]
    assert run(session, r"printf '\xff\xfe\n'") == "\ufffd\ufffd\n"


# -- ends ------------------------------------------------------------------------------------------------------------------


def test_a_shell_that_exits_has_its_exit_code(workspace: Path) -> None:
    process = SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=BASH)
    output, _ = process.communicate("sleep 60 & echo ended; exit 3\n", timeout=5)
    assert (output, process.returncode) == ("ended\n", 3)


@pytest.mark.parametrize("end", ["kill", "discard"])
def test_everything_ends_with_the_process(workspace: Path, end: str) -> None:
    before = at_rest()
    process: Any = SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=BASH)
    process.stdin.write("trap '' TERM HUP; sleep 1000 & sleep 1000\n")
    process.stdin.flush()
    if end == "kill":
        os.killpg(os.getpgid(process.pid), signal.SIGKILL)
        process.communicate()
    else:
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        del process
        gc.collect()
    assert soon(lambda: at_rest() <= before)


def test_a_shell_that_was_killed_has_the_exit_code_of_a_shell(workspace: Path) -> None:
    process = SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=BASH)
    process.communicate("kill -KILL $$\n", timeout=5)
    assert process.returncode == 128 + signal.SIGKILL


def test_everything_ends_with_the_application(workspace: Path) -> None:
    code = (
        "import os, pathlib, signal\nfrom code_chains.agents import SandboxExecutionPolicy\n"
        f"workspace = pathlib.Path({str(workspace)!r})\n"
        "process = SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=['/bin/bash'])\n"
        "process.stdin.write('sleep 1000\\n'); process.stdin.flush()\nprint(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False, timeout=30
    )
    relay = Path(f"/proc/{done.stdout.strip()}/cmdline")
    assert done.returncode == -signal.SIGKILL
    assert soon(lambda: not relay.exists() or not relay.read_bytes())


# -- arguments -------------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_workspace_that_is_to_be_kept_is_refused(tmp_path: Path) -> None:
    agent = agent_with(SandboxExecutionPolicy(), "ls", workspace_root=tmp_path)
    with pytest.raises(ConfigurationError, match="workspace_root"):
        agent.invoke(ASKED)


def test_a_shell_that_does_not_exist_is_reported(workspace: Path) -> None:
    with pytest.raises(ExecutorError, match=r"No such file or directory: '/bin/no-shell'"):
        SandboxExecutionPolicy().spawn(workspace=workspace, env={}, command=["/bin/no-shell"])


def test_a_shell_that_takes_too_long_to_start_is_ended(workspace: Path) -> None:
    before = descendants()
    with pytest.raises(ExecutorError, match=r"within 0\.01 seconds"):
        SandboxExecutionPolicy(startup_timeout=0.01).spawn(workspace=workspace, env={}, command=BASH)
    assert soon(lambda: descendants() <= before)


@pytest.mark.smoke
def test_wrong_arguments_are_refused_at_once() -> None:
    import resource  # Not on Windows.

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"limits": 3}, "limits"),
        ({"limits": Limits(open_files=min(most + 1, 10**6))}, "open_files"),
        ({"network": ["nowhere"]}, "network"),
        ({"command_timeout": 0}, "command_timeout"),
        ({"startup_timeout": "1"}, "startup_timeout"),
    ]
    for arguments, argument in wrong:
        if argument != "open_files" or most < 10**6:
            with pytest.raises(ConfigurationError, match=argument):
                SandboxExecutionPolicy(**arguments)
    with pytest.raises(InputError, match="does not exist"):
        SandboxExecutionPolicy(files=[Path("nowhere.csv")])

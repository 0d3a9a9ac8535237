"""What people do in notebooks and at a terminal works in programs: figures, display, pools, progress bars, input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from code_chains.errors import ConfigurationError, InputError
from code_chains.executors import Limits, MontyExecutor, SandboxExecutor, Session

PYPLOT = "import matplotlib.pyplot as plt\n"


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=10)) as executor:
        yield executor


@pytest.fixture
def session(executor: SandboxExecutor) -> Iterator[Session]:
    with executor.session() as session:
        yield session


FIGURES = {
    "two shows": (
        "plt.plot([1, 2]); plt.show(); plt.plot([3, 1]); plt.show()",
        ["figure-1.png", "figure-2.png"],
    ),
    "show and close": ("plt.plot([1, 2]); plt.show(); plt.close()", ["figure-1.png"]),
    "a loop of shows": (
        "for n in range(3):\n    plt.bar([1, 2], [n, 2])\n    plt.show()",
        ["figure-1.png", "figure-2.png", "figure-3.png"],
    ),
    "closed and never saved": ("fig, ax = plt.subplots(); ax.plot([1, 2]); plt.close(fig)", ["figure-1.png"]),
    "saved and closed": ("plt.plot([1, 2]); plt.savefig('a.png'); plt.close()", ["a.png"]),
    "shown and saved": ("plt.plot([1, 2]); plt.show(); plt.savefig('a.png')", ["a.png"]),
    "made without pyplot": (
        "from matplotlib.figure import Figure\nf = Figure(); ax = f.subplots().plot([1, 2]); None",
        ["figure-1.png"],
    ),
    "empty": ("plt.figure(); None", []),
    "displayed": ("fig, ax = plt.subplots(); ax.plot([1, 2]); display(fig)", ["figure-1.png"]),
    "beside a file of the same name": (
        "plt.plot([1, 2]); open('figure-1.png', 'w').write('x'); None",
        ["figure-1.png", "figure-1-2.png"],
    ),
    "of pandas": ("import pandas as pd\npd.Series([1, 2]).plot(); plt.show()", ["figure-1.png"]),
}


@pytest.mark.parametrize("case", FIGURES)
def test_each_figure_comes_out_once(executor: SandboxExecutor, case: str) -> None:
    code, names = FIGURES[case]
    assert [artifact.name for artifact in executor.run(PYPLOT + code).artifacts] == names


PLOTLY = "import plotly.graph_objects as go\nfig = go.Figure(go.Bar(x=['a', 'b'], y=[1, 2]))\n"
ALTAIR = "import altair as alt\nfig = alt.Chart(alt.Data(values=[{'x': 'a', 'y': 1}])).mark_bar().encode(x='x:N', y='y:Q')\n"
BOKEH = "from bokeh.plotting import figure, output_file, show\nfig = figure()\nfig.line([1, 2], [3, 4])\n"
FORMS = ["figure-1.html", "figure-1.json"]
CHARTS = {
    "plotly, shown": (f"{PLOTLY}fig.show()", FORMS),
    "plotly, the last value": (f"{PLOTLY}fig", FORMS),
    "plotly, both": (f"{PLOTLY}fig.show()\nfig", FORMS),
    "plotly, in a browser": (
        f"{PLOTLY}import plotly.io as pio\npio.renderers.default = 'browser'\npio.show(fig)",
        FORMS,
    ),
    "plotly, displayed": (f"{PLOTLY}display(fig)", FORMS),
    "plotly, written": (f"{PLOTLY}fig.write_html('mine.html')", ["mine.html"]),
    "altair, shown": (f"{ALTAIR}fig.show()", FORMS),
    "altair, displayed beside another": (f"{ALTAIR}(fig | fig).display()", FORMS),
    "bokeh, shown": (f"{BOKEH}show(fig)", ["figure-1.html"]),
    "bokeh, into a file": (f"{BOKEH}output_file('mine.html')\nshow(fig)", ["mine.html"]),
    "plotly, shown twice": (f"{PLOTLY}fig.show()\nfig.show()", FORMS),
    "two in a list": (f"{PLOTLY}[fig, go.Figure()]", [*FORMS, "figure-2.html", "figure-2.json"]),
    "an image": ("from PIL import Image\nImage.new('RGB', (9, 9)).show()", ["result.png"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHARTS)
def test_each_chart_comes_out_once_and_no_repr_of_it(executor: SandboxExecutor, case: str) -> None:
    code, names = CHARTS[case]
    execution = executor.run(code)
    assert ([one.name for one in execution.artifacts], execution.output) == (names, "")
    assert not execution.display_data


@pytest.mark.parametrize(
    "call", ["open('a', 'w').write('x')", "__import__('pathlib').Path('a').write_text('x')"]
)
def test_how_much_a_file_holds_is_no_result(executor: SandboxExecutor, call: str) -> None:
    assert executor.run(call).output == ""


def test_a_session_goes_on_from_a_checkpoint_after_a_figure_with_text(session: Session) -> None:
    session.run(f"{PYPLOT}plt.bar([1, 2], [3, 4])")  # Its fonts are files that a fork closes.
    session.checkpoint("plotted")
    session.restore("plotted")
    assert session.run("1 + 6").output == "7"


def test_a_figure_that_cannot_be_drawn_is_an_error(executor: SandboxExecutor) -> None:
    execution = executor.run(PYPLOT + r"plt.title(r'$\frac{a$')")
    assert execution.error is not None
    assert "Expected" in execution.error.message


def test_figures_of_later_cells_are_shown_as_well(session: Session) -> None:
    session.run(f"{PYPLOT}plt.plot([1, 2]); plt.show()")
    assert len(session.run("plt.plot([3, 4]); plt.show(); plt.plot([1]); plt.show()").artifacts) == 2


def test_what_is_displayed_is_printed_and_has_its_rich_views(executor: SandboxExecutor) -> None:
    execution = executor.run("import pandas as pd\ndisplay('hi', 3)\ndisplay(pd.DataFrame({'a': [1]}))")
    assert execution.output == "hi\n3\n   a\n0  1"
    assert [view.media_type for view in execution.display_data] == ["text/html", "text/csv"]


PNG = "bytes.fromhex('89504e470d0a1a0a') + bytes(30)"
DISPLAYS = {
    "HTML": ("display(HTML('<p>a<br>b</p>&lt;'))", "a\nb\n<", [], ["text/html"]),
    "Markdown": ("display(Markdown('# T'))", "# T", [], ["text/markdown"]),
    "mathematics": ("display(Math('x'))", r"$\displaystyle x$", [], ["text/x-latex"]),
    "images": (
        f"display(Image({PNG}), Image({PNG} + b'x')); clear_output(); 1",
        "1",
        ["result.png", "result-2.png"],
        [],
    ),
    "JSON": ("display(JSON({'a': 1}), display_id='j').update(2)", "{'a': 1}\n2", [], []),
    "a last value": ("HTML('<b>x</b>')", "x", [], ["text/html"]),
    "an object": ("class A:\n def _repr_html_(self): return 'y'\ndisplay(A())", "y", [], ["text/html"]),
    "an object of images": (f"class A:\n def _repr_png_(self): return {PNG}\nA()", "", ["result.png"], []),
}


@pytest.mark.parametrize("case", DISPLAYS)
def test_what_ipython_displays_is_text_or_an_image(executor: SandboxExecutor, case: str) -> None:
    code, output, files, views = DISPLAYS[case]
    execution = executor.run(f"from IPython.display import *\n{code}")
    assert (execution.output, [each.name for each in execution.artifacts]) == (output, files)
    assert [view.media_type for view in execution.display_data] == views


OUTPUTS = {
    "a progress bar": ('for i in range(2000): print(f"\\rLoading {i}", end="")', "Loading 1999"),
    "a buffer of its own": (
        'import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")\nprint("é")',
        "é",
    ),
    "other settings": ('import sys\nsys.stdout.reconfigure(encoding="utf-8")\nprint("é")', "é"),
    "a detached stream": (
        'import codecs, sys\nsys.stdout = codecs.getwriter("utf-8")(sys.stdout.detach())\nprint("é")',
        "é",
    ),
    "the file of the output": ('open("/dev/stdout", "w").write("hi"); None', "hi"),
    "a pool of threads without an end": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\nprint([*pool.map(abs, [-1])])",
        "[1]",
    ),
    "a pool of processes without an end": (
        "from concurrent.futures import ProcessPoolExecutor\npool = ProcessPoolExecutor(2)\nprint([*pool.map(abs, [-1])])",
        "[1]",
    ),
    "futures as they are completed": (
        "from concurrent.futures import *\npool = ThreadPoolExecutor(2)\n"
        "print([f.result() for f in as_completed([pool.submit(abs, -1)])])",
        "[1]",
    ),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_the_output_is_what_a_person_would_have_seen(executor: SandboxExecutor, case: str) -> None:
    code, output = OUTPUTS[case]
    execution = executor.run(code)
    assert (execution.status, execution.output) == ("ok", output)


def test_a_pool_of_threads_serves_later_cells(session: Session) -> None:
    session.run(
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n[*pool.map(abs, [-1])]"
    )
    assert session.run("[*pool.map(abs, [-1, -2, -3])]").result == "[1, 2, 3]"


READS = {
    "input": ("print(input('name? '), int(input()) * 2)", "name? Ann 42"),
    "all of it": ("import sys; print(sys.stdin.read().split())", "['Ann', '21']"),
    "lines": ("import sys; print([line.strip() for line in sys.stdin])", "['Ann', '21']"),
    "bytes": ("import sys; print(sys.stdin.buffer.readline())", "b'Ann\\n'"),
    "its descriptor": ("print(open(0).read().split())", "['Ann', '21']"),
    "another process": (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'print(input())'], capture_output=True, text=True).stdout)",
        "Ann",
    ),
}


@pytest.mark.parametrize("case", READS)
def test_a_program_reads_its_standard_input(executor: SandboxExecutor, case: str) -> None:
    code, output = READS[case]
    assert executor.run(code, stdin="Ann\n21\n").output == output


def test_the_next_cell_does_not_read_the_input_of_the_last(session: Session) -> None:
    assert session.run("input()", stdin="a\nb\n").result == "'a'"
    report = session.run("input()").error
    assert report is not None
    assert report.type == "EOFError"


def test_standard_input_is_text() -> None:
    with pytest.raises(InputError, match="stdin must be text, not int"):
        SandboxExecutor().run("input()", stdin=5)  # type: ignore[arg-type]


def test_an_executor_whose_programs_read_no_input_says_so() -> None:
    with pytest.raises(ConfigurationError, match="programs of MontyExecutor read none"):
        MontyExecutor().run("1", stdin="x")

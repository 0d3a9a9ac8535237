"""Makes the pictures of the page: a conversation about sales, with a model that knows its lines.

Run it where Chromium is: `python docs/images/make.py`. It needs `pip install -e ".[dev]"`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_core.messages import BaseMessage
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SALES = "month,region,amount\n" + "".join(
    f"2026-{month:02},{region},{start + month * growth + (month * start) % 23}\n"
    for month in range(1, 13)
    for region, start, growth in (("North", 120, 4), ("South", 90, 9), ("West", 150, -2))
)
LINES = {
    "Which region": (
        """import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["month"])
totals = (
    sales.groupby("region")["amount"]
    .agg(total="sum", average="mean", best="max")
    .sort_values("total", ascending=False)
    .round(1)
)
totals""",
        "South sold the most over the year, **1925** in total, a little ahead of North with **1889**.",
    ),
    "month by month": (
        """import matplotlib.pyplot as plt

monthly = sales.pivot(
    index="month", columns="region", values="amount"
)
colors = ["#94a3b8", "#4338ca", "#d97706"]
ax = monthly.plot(figsize=(6.4, 3.4), lw=2.2, color=colors)
ax.set(title="Sales by region, 2026", xlabel="")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, title="")
plt.tight_layout()

change = monthly.iloc[-1] - monthly.iloc[0]
print(change.sort_values(ascending=False).to_string())""",
        "South has grown by **100** from January to December and North by **53**; West has lost **28**.",
    ),
}


def script(messages: list[BaseMessage]) -> str:
    """Return the reply to the last question."""
    from code_chains.testing import asks_for_code

    asked = str(messages[-1].text)
    program, answer = LINES[max(LINES, key=asked.rfind)]
    return f"```python\n{program}\n```" if asks_for_code(messages) else answer


def serve_sales() -> None:
    """Serve the page until the process is ended."""
    from code_chains import create_code_chain
    from code_chains.apps.page import serve
    from code_chains.apps.page.address import Address
    from code_chains.executors import Limits
    from code_chains.testing import ScriptedModel

    with create_code_chain(ScriptedModel(script), limits=Limits(seconds=30, memory="1G")) as chain:
        serve(chain, Address(port=0), open_browser=False)


@contextmanager
def served() -> Iterator[str]:
    """Serve the page, and yield its address."""
    server = subprocess.Popen([sys.executable, __file__, "serve"], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        yield re.findall(r"http\S+", server.stderr.readline())[0]
    finally:
        server.terminate()
        server.wait()


def converse(page: Page, address: str, sales: Path) -> None:
    """Ask two questions about the sales."""
    page.goto(address)
    page.locator("input[type=file]").set_input_files(sales)
    page.locator(".files li").first.wait_for()
    for question in ("Which region sold the most in sales.csv?", "Show it month by month. Who has grown?"):
        page.get_by_label("Your question").fill(question)
        page.keyboard.press("Enter")
        page.locator(".turn", has_text=question).locator(".verdict").wait_for(timeout=60_000)
    page.locator(".outcome img").wait_for()
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)


def main() -> None:
    """Take the pictures."""
    with served() as address, sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        sales = Path(folder, "sales.csv")
        sales.write_text(SALES)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
            converse(page, address, sales)
            page.add_style_tag(
                content=".turn { min-height: 0 !important }"
            )  # The picture ends with the answer.
            height = int(page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": 1280, "height": height})
            page.wait_for_timeout(500)
            page.screenshot(path=HERE / f"page-{scheme}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    serve_sales() if sys.argv[1:] == ["serve"] else main()

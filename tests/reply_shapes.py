"""Replies of language models in many plausible forms, each with the output of the program it holds.

Every `Shape` is one reply, written out by hand. `expected` is what a plain Python prints (stripped) when it
runs the program in the reply; it is None where the reply holds no Python program and nothing may be run.
`SHAPES` holds all of them; `GROUPS` is the same data by form.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One reply of a model, and the (stripped) standard output of the program in it; None if it holds none."""

    name: str
    reply: str
    expected: str | None


FENCES: tuple[Shape, ...] = (
    Shape("fence python", "```python\nprint(6 * 7)\n```", "42"),
    Shape("fence py", "```py\ntotal = sum(range(10)) - 3\nprint(total)\n```\n", "42"),
    Shape(
        "fence capital Python",
        "Sure! Here's a short program:\n\n```Python\nfor i in range(3):\n    print(i)\n```\n\n"
        "Hope this helps!",
        "0\n1\n2",
    ),
    Shape("fence upper PYTHON", "```PYTHON\nprint(max(3, 42, 7))\n```", "42"),
    Shape("fence python3", "Certainly.\n\n```python3\nprint('ok', 42)\n```\n", "ok 42"),
    Shape("fence python3.11", '```python3.11\nprint(f"{6 * 7=}")\n```', "6 * 7=42"),
    Shape("fence py3", "```py3\nprint(*[4, 2], sep='')\n```", "42"),
    Shape("fence Python 3 with space", "```Python 3\nprint(21 + 21)\n```", "42"),
    Shape("fence ipython", "```ipython3\na, b = 6, 7\nprint(a * b)\n```", "42"),
    Shape("fence no info", "Here is the code:\n\n```\nx = 40\nx += 2\nprint(x)\n```\n", "42"),
    Shape("fence no info only", "```\nprint(6*7)\n```", "42"),
    Shape("fence pandoc class", "```{.python}\nprint(6 * 7)\n```\n", "42"),
    Shape(
        "fence pandoc class numbers", '```{.python .numberLines startFrom="1"}\nprint(84 // 2)\n```\n', "42"
    ),
    Shape("fence quarto", "```{python}\nnums = [40, 2]\nprint(sum(nums))\n```\n", "42"),
    Shape(
        "fence quarto options",
        "```{python}\n#| echo: true\n#| label: answer\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape("fence title", '```python title="main.py"\nprint("main")\n```', "main"),
    Shape("fence colon filename", "```python:src/main.py\nprint(6 * 7)\n```", "42"),
    Shape("fence linenos", "```python {linenos=true, hl_lines=[1]}\nprint(6 * 7)\n```", "42"),
    Shape("fence showLineNumbers", "```py showLineNumbers\nprint(2 * 21)\n```", "42"),
    Shape("fence language attribute", '```language="python"\nprint(6 * 7)\n```', "42"),
    Shape("fence lang-python", "```lang-python\nprint(6 * 7)\n```", "42"),
    Shape("fence space before info", "``` python\nprint(6 * 7)\n```", "42"),
    Shape("fence tilde", "~~~python\nprint(6 * 7)\n~~~\n", "42"),
    Shape("fence tilde no info", "The program:\n\n~~~\nprint(6 * 7)\n~~~\n\nIt prints 42.", "42"),
    Shape(
        "fence tilde with backticks inside",
        '~~~python\ndoc = """\n```\nls\n```\n"""\nprint(doc.count("`"))\n~~~\n',
        "6",
    ),
    Shape("fence four backticks", "````python\nprint(6 * 7)\n````\n", "42"),
    Shape(
        "fence four backticks with fence in string",
        '````python\nreadme = """# Title\n\n```bash\npip install x\n```\n"""\n'
        "print(len(readme.splitlines()))\n"
        "````\n\nThe outer fence has four backticks because the string has a fence.",
        "5",
    ),
    Shape(
        "fence five backticks with fence in string",
        "`````python\nprint('''```python\nprint(1)\n```''')\n`````\n",
        "```python\nprint(1)\n```",
    ),
    Shape(
        "fence in list item",
        "1. Run this:\n\n   ```python\n   for i in (4, 2):\n       print(i, end='')\n   ```\n\n"
        "2. Read the output.\n",
        "42",
    ),
    Shape(
        "fence in nested list item",
        "* Solution\n    * The code\n\n        ```python\n        def f(n):\n            return n * 7\n\n"
        "        print(f(6))\n        ```\n    * Done\n",
        "42",
    ),
    Shape("fence after bullet on same line", "- ```python\n  x = 42\n  print(x)\n  ```\n", "42"),
    Shape(
        "fence after number on same line",
        "1. ```python\n   if True:\n       print('numbered')\n   ```\n",
        "numbered",
    ),
    Shape(
        "fence tab indented",
        "Answer:\n\n\t```python\n\tfor word in ['a', 'b']:\n\t    print(word)\n\t```\n",
        "a\nb",
    ),
    Shape(
        "fence in blockquote",
        "> Here is the code:\n>\n> ```python\n> def f():\n>     return 42\n>\n> print(f())\n> ```\n>\n"
        "> Enjoy!\n",
        "42",
    ),
    Shape("fence in tight blockquote", ">```python\n>print(6 * 7)\n>```\n", "42"),
    Shape(
        "fence crlf",
        "Here you go:\r\n\r\n```python\r\ndef f(x):\r\n    return x * 2\r\n\r\nprint(f(21))\r\n```\r\n",
        "42",
    ),
    Shape("fence bom", "\ufeff```python\nprint(6 * 7)\n```\n", "42"),
    Shape("fence bom inside", "```python\n\ufeffprint(6 * 7)\n```\n", "42"),
    Shape("fence trailing spaces", "```python   \nprint(6 * 7)   \n```   \n", "42"),
    Shape("fence leading blank lines", "\n\n\n```python\n\n\nprint(6 * 7)\n\n\n```\n\n\n", "42"),
    Shape("fence unclosed", "```python\nx = 6\ny = 7\nprint(x * y)\n", "42"),
    Shape("fence unclosed no newline", "```python\nprint(6 * 7)", "42"),
    Shape(
        "fence unclosed after prose",
        "To get the answer, multiply the numbers.\n\n```py\nnumbers = [2, 3, 7]\nresult = 1\n"
        "for n in numbers:\n    result *= n\nprint(result)",
        "42",
    ),
    Shape("fence unclosed no info", "Code below.\n```\nprint('open end')\n", "open end"),
    Shape("fence unclosed with end token", "```python\nprint(6 * 7)<|eot_id|>", "42"),
    Shape("fence unclosed with partial closing", "```python\nprint(6 * 7)\n``", "42"),
    Shape("fence closed on last code line", "```python\nx = 6\nprint(x * 7)```", "42"),
    Shape(
        "fence closed on last code line with prose",
        "The code is:\n```python\nprint(6*7)```\nIt shows the product.",
        "42",
    ),
    Shape("fence one line with info", "```python print(6*7)```", "42"),
    Shape("fence one line without info", "```print(6*7)```", "42"),
    Shape("fence one line in sentence", "Just run ```print(6 * 7)``` and you are done.", "42"),
    Shape("fence one line semicolons", "```python x = 6; y = 7; print(x * y)```", "42"),
    Shape("fence code after info with more lines", "```python x = 6\ny = 7\nprint(x * y)\n```", "42"),
    Shape("fence code after bare backticks", "```import math\nprint(math.factorial(4))\n```", "24"),
    Shape("fence one line unclosed", "```python print(6*7)", "42"),
    Shape("fence info glued to code", "```pythonprint(6 * 7)\n```", "42"),
    Shape("fence info glued to import", "```pythonimport math\nprint(math.gcd(84, 126))\n```", "42"),
    Shape("fence end_code", "```py\nprint(6 * 7)\n```<end_code>", "42"),
    Shape("fence end_code on own line", "```python\nprint(6 * 7)\n```\n<end_code>\n", "42"),
    Shape("fence im_end", "```python\nprint(6 * 7)\n```<|im_end|>", "42"),
    Shape(
        "fence im_end and invented turn",
        "```python\nprint(6 * 7)\n```<|im_end|>\n<|im_start|>user\nThanks, that works!<|im_end|>\n",
        "42",
    ),
    Shape("fence eos", "```python\nprint(6 * 7)\n```</s>", "42"),
    Shape("fence inst eos", "<s> ```python\nprint(6 * 7)\n``` </s>", "42"),
    Shape("fence eot_id", "```python\nprint(6 * 7)\n```<|eot_id|>", "42"),
    Shape("fence end_of_turn", "```python\nprint(6 * 7)\n```\n<end_of_turn>\n", "42"),
    Shape("fence endoftext", "```python\nprint(6 * 7)\n```\n<|endoftext|>", "42"),
    Shape("fence deepseek end", "```python\nprint(6 * 7)\n```<｜end▁of▁sentence｜>", "42"),
    Shape("fence end token before closing", "```python\nprint(6 * 7)\n<|im_end|>\n```", "42"),
    Shape("fence prose on closing line", "```python\nprint(6 * 7)\n``` This prints 42, the product.", "42"),
    Shape("fence lone closing", "x = 6\ny = 7\nprint(x * y)\n```\n\nThis multiplies the two numbers.", "42"),
    Shape("fence lone closing only", "print(6 * 7)\n```", "42"),
    Shape("fence lone closing end_code", "print('prefilled')\n```<end_code>", "prefilled"),
    Shape(
        "fence lone closing after info word",
        "python\nfor i in range(2):\n    print('row', i)\n```\nDone.",
        "row 0\nrow 1",
    ),
    Shape("fence three open four close", "```python\nprint(6 * 7)\n````\n", "42"),
    Shape("fence four open three close", "````python\nprint(6 * 7)\n```\n", "42"),
    Shape("fence three open two close", "```python\nprint(6 * 7)\n``\n\nThis prints 42.", "42"),
    Shape("fence two backticks", "``python\nprint(6 * 7)\n``\n", "42"),
    Shape("fence single backticks around block", "`python\nx = 42\nprint(x)\n`", "42"),
    Shape("fence single quotes", "'''python\nprint(6 * 7)\n'''", "42"),
    Shape("fence single quotes no info", "Here is the code:\n\n'''\nx = 6\nprint(x * 7)\n'''\n", "42"),
    Shape("fence double quotes", '"""python\nprint(6 * 7)\n"""', "42"),
    Shape("fence info on next line", "```\npython\nprint(6 * 7)\n```", "42"),
    Shape("fence info twice", "```python\npython\nprint(6 * 7)\n```", "42"),
    Shape("fence opened twice", "```python\n```python\nprint(6 * 7)\n```", "42"),
    Shape("fence closed twice", "```python\nprint(6 * 7)\n```\n```\n", "42"),
    Shape("fence glued to prose", "Here is the code:```python\nprint(6 * 7)\n```", "42"),
    Shape("fence escaped backticks", "\\`\\`\\`python\nprint(6 * 7)\n\\`\\`\\`", "42"),
    Shape("fence tool_code", "```tool_code\nprint(6 * 7)\n```", "42"),
    Shape("fence code info", "```code\nprint(6 * 7)\n```", "42"),
    Shape("fence filename info", "```main.py\nprint(6 * 7)\n```", "42"),
    Shape("fence filename bold", "**main.py**\n```python\nprint('main.py')\n```\n", "main.py"),
    Shape(
        "fence filename comment",
        "```python\n# filename: answer.py\n\ndef answer() -> int:\n    return 42\n\n\nprint(answer())\n```\n",
        "42",
    ),
    Shape(
        "fence body indented",
        "```python\n    x = 6\n    if x:\n        print(x * 7)\n```\n",
        "42",
    ),
    Shape("fence only opening indented", "   ```python\nfor i in range(1):\n    print(42 + i)\n```\n", "42"),
    Shape("fence only closing indented", "```python\nprint(6 * 7)\n    ```\n\nDone.", "42"),
    Shape(
        "fence with backticks in string",
        '```python\nfence = "```"\nprint(fence + "python", len(fence))\n```\n',
        "```python 3",
    ),
    Shape(
        "fence with fence lines in string",
        '```python\nmd = """\n```bash\nls\n```\n"""\nprint(len(md.split()))\n```\n',
        "3",
    ),
    Shape(
        "fence with fenced example in docstring",
        '```python\ndef double(x):\n    """Double it.\n\n    Example:\n    ```python\n    double(2)\n'
        '    ```\n    """\n'
        "    return 2 * x\n\n\nprint(double(21))\n```\n\nThe docstring shows how to call it.",
        "42",
    ),
    Shape(
        "fence with fence in comment",
        "```python\n# the text between ``` and ``` is code\nprint('`' * 3)\n```\n",
        "```",
    ),
    Shape(
        "fence with regex for fences",
        '```python\nimport re\n\ntext = "```py\\nprint(1)\\n```"\n'
        'print(re.findall(r"```(\\w+)\\n(.*?)```", text, re.S)[0][0])\n```',
        "py",
    ),
    Shape(
        "fence in markdown fence",
        "```markdown\n# Solution\n\nThe program:\n\n```python\nprint(6 * 7)\n```\n```\n",
        "42",
    ),
    Shape(
        "fence in details",
        "<details>\n<summary>Show code</summary>\n\n```python\nprint('hidden')\n```\n\n</details>\n",
        "hidden",
    ),
    Shape(
        "fence non-ascii output",
        '```python\nprint("Grüße aus Köln – 日本語 ✓")\n```',
        "Grüße aus Köln – 日本語 ✓",
    ),
    Shape("fence non-ascii names", "```python\nπ = 3\nдлина = 2 * π * 7\nprint(длина)\n```", "42"),
    Shape(
        "fence class",
        "Here's a clean approach.\n\n```python\nfrom dataclasses import dataclass\n\n\n@dataclass\n"
        "class Point:\n"
        "    x: int\n    y: int\n\n    def area(self) -> int:\n        return self.x * self.y\n\n\n"
        "print(Point(6, 7))\nprint(Point(6, 7).area())\n```\n",
        "Point(x=6, y=7)\n42",
    ),
    Shape(
        "fence main guard",
        '```python\ndef main():\n    print(42)\n\n\nif __name__ == "__main__":\n    main()\n```',
        "42",
    ),
    Shape(
        "fence future import and docstring",
        '```python\n"""Compute the answer."""\nfrom __future__ import annotations\n\n\n'
        "def f(x: int | str) -> str:\n"
        "    return str(x)\n\n\nprint(f(42), __doc__)\n```\n",
        "42 Compute the answer.",
    ),
    Shape(
        "fence escapes in string",
        r"""```python
print("a\tb\\n".replace("\t", "-"))
print('x\ny')
```""",
        "a-b\\n\nx\ny",
    ),
    Shape(
        "fence html entities in string",
        '```python\nimport html\n\nprint("&lt;b&gt;", html.unescape("&lt;b&gt;"))\n```',
        "&lt;b&gt; <b>",
    ),
    Shape(
        "fence smart quotes in string",
        '```python\ns = "“quoted” and ‘single’"\nprint(s)\n```',
        "“quoted” and ‘single’",
    ),
    Shape("fence no-break space in string", '```python\nprint(ord("\u00a0"))\n```', "160"),
    Shape(
        "fence prompt-like string",
        '```python\ntext = """\n>>> print(1)\n1\n"""\nprint(text.strip())\n```',
        ">>> print(1)\n1",
    ),
    Shape(
        "fence think in string",
        '```python\ntext = "<think>hm</think> yes"\nprint(text.split("</think>")[1].strip())\n'
        "print(text)\n```",
        "yes\n<think>hm</think> yes",
    ),
    Shape(
        "fence diff in string",
        "```python\npatch = '''\n--- a\n+++ b\n-old\n+new\n'''\n"
        "print(sum(l.startswith('+') for l in patch.split()))\n```",
        "2",
    ),
    Shape(
        "fence tool json in string",
        '```python\nimport json\n\nraw = \'{"name": "python", "arguments": {"code": "print(1)"}}\'\n'
        'print(json.loads(raw)["arguments"]["code"])\n```',
        "print(1)",
    ),
)

MULTI: tuple[Shape, ...] = (
    Shape(
        "multi corrected",
        "```python\nprint(6 * 8)\n```\n\nWait, that is wrong. Corrected:\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi corrected syntax error",
        "```python\nprint(6 * 7\n```\n\n"
        "Oops, I forgot the closing parenthesis. Here is the corrected version:\n\n"
        "```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi corrected function",
        "```python\ndef f(n):\n    return n * 6\n\nprint(f(6))\n```\n\n"
        "Actually, I made a mistake: the factor must be 7."
        " Here's the fixed version:\n\n```python\ndef f(n):\n    return n * 7\n\nprint(f(6))\n```\n",
        "42",
    ),
    Shape(
        "multi your code and fixed code",
        "Your code:\n\n```python\nfor i in range(3)\n    print(i)\n```\n\n"
        "The colon is missing. Fixed code:\n\n"
        "```python\nfor i in range(3):\n    print(i)\n```\n",
        "0\n1\n2",
    ),
    Shape(
        "multi before and after",
        "**Before:**\n```python\nimport math\nprint(math.floor(42.9) - 1)\n```\n\n**After (fixed):**\n"
        "```python\nimport math\nprint(math.floor(42.9))\n```\n",
        "42",
    ),
    Shape(
        "multi draft and final",
        "First draft:\n\n```python\nresult = 40\nprint(result)\n```\n\nFinal version:\n\n"
        "```python\nresult = 40 + 2\nprint(result)\n```",
        "42",
    ),
    Shape(
        "multi wrong and right",
        "❌ Don't do this:\n\n```python\nprint('6' * 7)\n```\n\n✅ Do this instead:\n\n```python\n"
        "print(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi pip then python",
        "First, install the package:\n\n```bash\npip install statistics\n```\n\nThen run:\n\n"
        "```python\nimport statistics\n\nprint(statistics.mean([41, 43]))\n```\n",
        "42",
    ),
    Shape(
        "multi sh dollar then py",
        "```sh\n$ python3 -m venv .venv\n$ source .venv/bin/activate\n```\n\n```py\nprint(6 * 7)\n```",
        "42",
    ),
    Shape(
        "multi python then run command",
        "Save this as `answer.py`:\n\n```python\nprint(6 * 7)\n```\n\nRun it:\n\n```bash\n"
        "python answer.py\n```\n",
        "42",
    ),
    Shape(
        "multi python then powershell",
        "```python\nprint('windows')\n```\n\n```powershell\nPS C:\\> python .\\main.py\n```\n",
        "windows",
    ),
    Shape(
        "multi no info python then no info command",
        "Create `main.py`:\n\n```\nfor i in range(2):\n    print(i)\n```\n\nand start it with\n\n```\n"
        "python main.py\n```\n",
        "0\n1",
    ),
    Shape(
        "multi python then text output",
        "```python\nprint('The answer is', 6 * 7)\n```\n\nOutput:\n\n```text\nThe answer is 42\n```\n",
        "The answer is 42",
    ),
    Shape(
        "multi python then bare output",
        "```python\nprint(6 * 7)\n```\n\n**Output:**\n```\n42\n```\n",
        "42",
    ),
    Shape(
        "multi python then bare list output",
        "```python\nprint([n * n for n in range(4)])\n```\n\nOutput:\n```\n[0, 1, 4, 9]\n```\n",
        "[0, 1, 4, 9]",
    ),
    Shape(
        "multi python then output labelled python",
        "```python\nprint('Total:', 42, 'items')\n```\n\nThis will output:\n\n```python\nTotal: 42 items\n"
        "```\n",
        "Total: 42 items",
    ),
    Shape(
        "multi python then output fence",
        "```python\nimport sys\nprint('out'); print('err', file=sys.stderr)\n```\n```output\nout\nerr\n```\n",
        "out",
    ),
    Shape(
        "multi python then console session",
        "```python\nprint(6 * 7)\n```\n\n```console\n$ python main.py\n42\n$\n```\n",
        "42",
    ),
    Shape(
        "multi python then traceback",
        "The first attempt failed with:\n\n```\nTraceback (most recent call last):\n"
        "  File \"main.py\", line 1, in <module>\nNameError: name 'x' is not defined\n```\n\n"
        "Define it first:\n\n```python\nx = 42\nprint(x)\n```\n",
        "42",
    ),
    Shape(
        "multi parts def then call",
        "First define the function:\n\n```python\ndef double(x):\n    return 2 * x\n```\n\nThen call it:\n\n"
        "```python\nprint(double(21))\n```\n",
        "42",
    ),
    Shape(
        "multi parts three",
        "**Step 1: imports**\n```python\nimport math\n```\n**Step 2: function**\n```python\ndef area(a, b):\n"
        "    return math.prod([a, b])\n```\n**Step 3: run**\n```python\nprint(area(6, 7))\n```\n",
        "42",
    ),
    Shape(
        "multi parts in list",
        "1. Set up the data:\n\n   ```python\n   data = [6, 7]\n   ```\n\n2. Multiply:\n\n   ```python\n"
        "   out = 1\n"
        "   for d in data:\n       out *= d\n   ```\n\n3. Show it:\n\n   ```python\n   print(out)\n   ```\n",
        "42",
    ),
    Shape(
        "multi parts both print",
        "Part 1:\n\n```python\nitems = ['a', 'b']\nprint(len(items))\n```\n\n"
        "Part 2, which continues with the list:\n\n"
        "```python\nitems.append('c')\nprint(len(items))\n```\n",
        "2\n3",
    ),
    Shape(
        "multi class and example usage",
        "```python\nclass Stack:\n    def __init__(self):\n        self.items = []\n\n"
        "    def push(self, item):\n"
        "        self.items.append(item)\n\n    def pop(self):\n        return self.items.pop()\n```\n\n"
        "### Example usage\n\n```python\ns = Stack()\ns.push(1)\ns.push(42)\nprint(s.pop())\n```\n",
        "42",
    ),
    Shape(
        "multi example usage no info",
        "```python\ndef greet(name):\n    return f'Hello, {name}!'\n```\n\nUsage:\n\n```\n"
        "print(greet('Ada'))\n```\n",
        "Hello, Ada!",
    ),
    Shape(
        "multi parts with output between",
        "```python\nx = 6\nprint(x)\n```\n\nOutput:\n```text\n6\n```\n\nNow multiply `x`:\n\n"
        "```python\nprint(x * 7)\n```\n\nOutput:\n```text\n42\n```\n",
        "6\n42",
    ),
    Shape(
        "multi parts across pip",
        "```python\nimport json\n\nblob = json.dumps({'n': 42})\n```\n\n"
        "No `pip install` is needed. Next cell:\n\n"
        "```python\nprint(json.loads(blob)['n'])\n```\n",
        "42",
    ),
    Shape(
        "multi options",
        "**Option 1**\n\n```python\nprint(6 * 7)\n```\n\n**Option 2**\n\n```python\nprint(sum([7] * 6))\n"
        "```\n",
        "42",
    ),
    Shape(
        "multi alternative one-liner",
        "```python\ntotal = 0\nfor i in range(1, 5):\n    total += i\nprint(total)\n```\n\n"
        "Alternatively, as a one-liner:\n\n```python\nprint(sum(range(1, 5)))\n```\n",
        "10",
    ),
    Shape(
        "multi methods",
        "### Method 1: slicing\n```python\ns = 'olleh'\nprint(s[::-1])\n```\n### Method 2: reversed\n"
        "```python\ns = 'olleh'\nprint(''.join(reversed(s)))\n```\nBoth methods give the same result.",
        "hello",
    ),
    Shape(
        "multi json input then python",
        'Given this input:\n\n```json\n{"a": 6, "b": 7}\n```\n\nthis program multiplies the values:\n\n'
        '```python\nimport json\n\nd = json.loads(\'{"a": 6, "b": 7}\')\nprint(d["a"] * d["b"])\n```\n',
        "42",
    ),
    Shape(
        "multi python then json",
        '```python\nimport json\n\nprint(json.dumps({"answer": 42}))\n```\n\nIt prints:\n\n'
        '```json\n{"answer": 42}\n```\n',
        '{"answer": 42}',
    ),
    Shape(
        "multi other language version",
        "JavaScript:\n\n```javascript\nconsole.log(6 * 7);\n```\n\nPython:\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi python then c",
        "```python\nprint('py')\n```\n\nThe same in C:\n\n```c\n#include <stdio.h>\n"
        'int main(void) { puts("py"); return 0; }\n```\n',
        "py",
    ),
    Shape(
        "multi sql then python",
        "```sql\nSELECT COUNT(*) FROM t;\n```\n\nwrapped in Python:\n\n```python\nimport sqlite3\n\n"
        "db = sqlite3.connect(':memory:')\ndb.execute('CREATE TABLE t (x)')\n"
        "db.executemany('INSERT INTO t VALUES (?)', [(1,), (2,)])\n"
        "print(db.execute('SELECT COUNT(*) FROM t').fetchone()[0])\n```\n",
        "2",
    ),
    Shape(
        "multi yaml then python",
        "```yaml\nname: demo\nsteps: 3\n```\n\n```python\nsteps = 3\nprint('step ' * steps)\n```\n",
        "step step step",
    ),
    Shape(
        "multi requirements then python",
        "`requirements.txt`:\n\n```\nnumpy>=1.26\npandas\n```\n\n`main.py`:\n\n```python\nprint('main')\n"
        "```\n",
        "main",
    ),
    Shape(
        "multi file tree then python",
        "```\nproject/\n├── main.py\n└── README.md\n```\n\n```python\nprint('tree')\n```\n",
        "tree",
    ),
    Shape(
        "multi mermaid then python",
        "```mermaid\ngraph TD\n  A[Start] --> B{x > 1?}\n```\n\n```python\nx = 2\n"
        "print('big' if x > 1 else 'small')\n```\n",
        "big",
    ),
    Shape(
        "multi pseudocode then python",
        "Pseudocode:\n\n```\nfunction answer\n  return 6 times 7\nend function\n```\n\nPython:\n\n"
        "```python\ndef answer():\n    return 6 * 7\n\nprint(answer())\n```\n",
        "42",
    ),
    Shape(
        "multi python then dockerfile",
        '```python\nprint("in a container")\n```\n\n```dockerfile\nFROM python:3.12\nCOPY main.py .\n'
        'CMD ["python", "main.py"]\n```\n',
        "in a container",
    ),
    Shape(
        "multi signature then full",
        "The key part is the loop header:\n\n```python\nfor i in range(1, 4):\n```\n\n"
        "The complete program:\n\n"
        "```python\np = 1\nfor i in range(1, 4):\n    p *= i\nprint(p)\n```\n",
        "6",
    ),
    Shape(
        "multi full then excerpts",
        "```python\ntotal = 0\nfor n in [40, 2]:\n    total += n\nprint(total)\n```\n\n### Explanation\n\n"
        "1. We start at zero:\n\n   ```python\n   total = 0\n   ```\n\n2. The loop adds every number:\n\n"
        "   ```python\n   for n in [40, 2]:\n   ```\n\n3. Finally, the result is printed:\n\n"
        "   ```python\n   print(total)\n   ```\n",
        "42",
    ),
    Shape(
        "multi repeated",
        "```python\nprint(6 * 7)\n```\n\n```python\nprint(6 * 7)\n```\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi full then truncated second",
        "```python\nx = 42\nprint(x)\n```\n\nHere is a more detailed variant with error handling:\n\n"
        "```python\ntry:\n    x = int(",
        "42",
    ),
    Shape(
        "multi empty then full",
        "```python\n```\n\nSorry, the block above was empty. Here it is:\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi tilde and backticks",
        "~~~bash\npython3 --version\n~~~\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi no blank lines",
        "```bash\nmkdir demo\n```\n```python\nprint(6 * 7)\n```\n```bash\nls demo\n```",
        "42",
    ),
    Shape(
        "multi test functions",
        "```python\ndef f(x):\n    return x + 2\n\n\nprint(f(40))\n```\n\nA test for it:\n\n"
        "```python\ndef test_f():\n    assert f(40) == 42\n```\n",
        "42",
    ),
    Shape(
        "multi self-check recomputed",
        "```python\nn = 10\nprint(n * (n + 1) // 2 - 1)\n```\n\n"
        "Hmm, this subtracts one too many. Let me fix that.\n\n"
        "```python\nn = 10\nprint(n * (n + 1) // 2)\n```\n\nNow the output is 55.",
        "55",
    ),
    Shape(
        "multi unclosed first",
        "```bash\npip install requests\n\n```python\nprint('first fence was left open')\n```\n",
        "first fence was left open",
    ),
    Shape(
        "multi two drafts then final",
        "Attempt 1:\n```python\nprint(6 + 7)\n```\nThat gives 13, not right.\n\nAttempt 2:\n```python\n"
        "print(6 ** 7)\n```\n"
        "That is too large.\n\nCorrect solution:\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "multi crlf parts",
        "```python\r\ndef f():\r\n    return 'crlf'\r\n```\r\n\r\nCall:\r\n\r\n```python\r\nprint(f())\r\n"
        "```\r\n",
        "crlf",
    ),
    Shape(
        "multi csv data then python",
        "```csv\nname,age\nAnn,20\nBob,22\n```\n\n```python\nimport csv\nimport io\n\n"
        'text = "name,age\\nAnn,20\\nBob,22\\n"\nrows = list(csv.DictReader(io.StringIO(text)))\n'
        "print(sum(int(r['age']) for r in rows))\n```\n",
        "42",
    ),
)

TAGS: tuple[Shape, ...] = (
    Shape("tag execute_python", "<execute_python>\nprint(6 * 7)\n</execute_python>", "42"),
    Shape(
        "tag execute_python with prose",
        "Let me compute that.\n\n<execute_python>\nx = 6\nprint(x * 7)\n</execute_python>\n\n"
        "I will wait for the result.",
        "42",
    ),
    Shape("tag execute_python one line", "<execute_python>print(6 * 7)</execute_python>", "42"),
    Shape("tag execute_python unclosed", "<execute_python>\nfor i in range(2):\n    print(i)\n", "0\n1"),
    Shape("tag execute", "I'll run this: <execute>\nprint(6 * 7)\n</execute>", "42"),
    Shape("tag code", "<code>\nprint(6 * 7)\n</code>", "42"),
    Shape("tag code one line", "<code>print(6 * 7)</code>", "42"),
    Shape("tag code with language", '<code language="python">\nprint(6 * 7)\n</code>', "42"),
    Shape("tag code closing only", "print(6 * 7)\n</code>", "42"),
    Shape("tag python", "<python>\ndef f():\n    return 42\n\nprint(f())\n</python>\n", "42"),
    Shape("tag python one line", "<python>print('tag')</python>", "tag"),
    Shape("tag python unclosed", "Here:\n<python>\nprint(6 * 7)\n", "42"),
    Shape("tag uppercase", "<PYTHON>\nprint(6 * 7)\n</PYTHON>", "42"),
    Shape("tag python_code", "<python_code>\nprint(6 * 7)\n</python_code>", "42"),
    Shape("tag script", '<script type="text/python">\nprint(6 * 7)\n</script>', "42"),
    Shape("tag solution", "<solution>\nprint(6 * 7)\n</solution>", "42"),
    Shape("tag answer", "<answer>\nprint(6 * 7)\n</answer>", "42"),
    Shape("tag answer with fence", "<answer>\n```python\nprint(6 * 7)\n```\n</answer>", "42"),
    Shape(
        "tag reasoning and answer",
        "<reasoning>\nSix times seven is needed, so multiply.\n</reasoning>\n<answer>\nprint(6 * 7)\n"
        "</answer>",
        "42",
    ),
    Shape("tag fence inside code", "<code>\n```python\nprint(6 * 7)\n```\n</code>", "42"),
    Shape(
        "tag fence inside execute_python",
        "<execute_python>\n```python\nprint(6 * 7)\n```\n</execute_python>",
        "42",
    ),
    Shape("tag inside fence", "```python\n<code>\nprint(6 * 7)\n</code>\n```", "42"),
    Shape("tag python inside fence", "```\n<python>\nx = 6\nprint(x * 7)\n</python>\n```", "42"),
    Shape(
        "tag execute inside xml fence", "```xml\n<execute_python>\nprint(6 * 7)\n</execute_python>\n```", "42"
    ),
    Shape("tag indented body", "<code>\n    x = 6\n    if x:\n        print(x * 7)\n</code>", "42"),
    Shape(
        "tag in string of program",
        '<code>\nhtml = "<b>bold</b>"\nprint(html.replace("b>", "i>"))\n</code>',
        "<i>bold</i>",
    ),
    Shape("tag cdata", "<code><![CDATA[\nif 1 < 2 and 3 > 2:\n    print('cdata')\n]]></code>", "cdata"),
    Shape(
        "tag xml response",
        '<response>\n  <explanation>Multiply both.</explanation>\n  <code lang="python">\nprint(6 * 7)\n'
        "  </code>\n</response>",
        "42",
    ),
    Shape(
        "tag artifact",
        "I've made a script.\n\n"
        '<antArtifact identifier="answer" type="application/vnd.ant.code" language="python" '
        'title="Answer">\nimport math\n\nprint(math.prod([6, 7]))\n</antArtifact>\n\nIt prints the product.',
        "42",
    ),
    Shape("tag file", '<file path="main.py">\nprint("from a file tag")\n</file>', "from a file tag"),
    Shape("pre code", "<pre><code>print(6 * 7)\n</code></pre>", "42"),
    Shape(
        "pre code class",
        '<pre><code class="language-python">x = 6\nfor i in range(1):\n    print(x * 7)\n</code></pre>',
        "42",
    ),
    Shape(
        "pre code html page",
        '<p>Here is the program:</p>\n<pre><code class="language-python">\ndef f(a, b):\n    return a * b\n\n'
        "print(f(6, 7))\n</code></pre>\n<p>It prints <b>42</b>.</p>\n",
        "42",
    ),
    Shape("pre only", "<pre>\nprint(6 * 7)\n</pre>", "42"),
    Shape(
        "html escaped pre code",
        "<pre><code>for i in range(5):\n    if i &gt; 1 and i &lt; 4:\n        print(&quot;i =&quot;, i)\n"
        "</code></pre>",
        "i = 2\ni = 3",
    ),
    Shape(
        "html escaped in fence",
        "```python\nif 1 &lt; 2 &lt;= 3:\n    print(&quot;yes&quot;)\n```",
        "yes",
    ),
    Shape("html escaped raw", "x = 5\nif x &gt; 3 and x &lt; 9:\n    print(&#39;between&#39;)\n", "between"),
    Shape("html escaped ampersand", "<code>print(6 &amp; 3, 6 &lt;&lt; 1)</code>", "2 12"),
    Shape("html escaped numeric", "<code>print(&#34;numeric&#34;, 7 &#62; 6)</code>", "numeric True"),
    Shape("html line breaks", "<code>x = 6<br>y = 7<br>print(x * y)</code>", "42"),
    Shape(
        "think then fence",
        "<think>\nThe user wants 6 times 7. That is 42.\n</think>\n\n```python\nprint(6 * 7)\n```",
        "42",
    ),
    Shape(
        "think with draft then fence",
        "<think>\nMaybe:\n```python\nprint(6 * 8)\n```\nNo, that is 48. It should be 7.\n</think>\n\n"
        "Here is the program:\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape(
        "think with draft then raw",
        "<think>\n```python\nprint('draft')\n```\n</think>\nprint('final')",
        "final",
    ),
    Shape("think empty", "<think>\n\n</think>\n\n```python\nprint(6 * 7)\n```", "42"),
    Shape(
        "think closing only",
        "Okay, so I need the product. Draft:\n```python\nprint(6 + 7)\n```\nNo, multiply.\n</think>\n\n"
        "```python\nprint(6 * 7)\n```",
        "42",
    ),
    Shape(
        "think with unclosed draft fence",
        "<think>\nSomething like\n```python\nfor i in range(100):\n    print('draft', i)\n</think>\n"
        "```python\nprint('final')\n```",
        "final",
    ),
    Shape("think then raw code", "<think>Simple multiplication.</think>\nx = 6\nprint(x * 7)\n", "42"),
    Shape("think then tag", "<think>use the tool</think><execute_python>print(6 * 7)</execute_python>", "42"),
    Shape(
        "thinking tag",
        "<thinking>\nI could print(41) but the question asks for 42.\n</thinking>\n\n```python\n"
        "print(42)\n```",
        "42",
    ),
    Shape(
        "thought tag",
        "<thought>\nTry `print(1)` first? No.\n</thought>\n<code>\nprint(42)\n</code>",
        "42",
    ),
    Shape(
        "scratchpad tag",
        "<scratchpad>\nprint('scratch')\n</scratchpad>\n\n```python\nprint('clean')\n```\n",
        "clean",
    ),
    Shape(
        "think magistral brackets",
        "[THINK]First idea: print(6 * 6), which is 36. Not right.[/THINK]```python\nprint(6 * 7)\n```",
        "42",
    ),
    Shape(
        "think kimi triangles",
        "◁think▷The draft is\n```python\nprint(0)\n```\n◁/think▷```python\nprint(6 * 7)\n```",
        "42",
    ),
    Shape(
        "think begin_of_thought",
        "<|begin_of_thought|>\nLet me try print(40).\n<|end_of_thought|>\n\n<|begin_of_solution|>\n"
        "```python\nprint(42)\n```\n<|end_of_solution|>",
        "42",
    ),
    Shape(
        "think ollama",
        "Thinking...\nThe user wants a loop. It should print twice.\n...done thinking.\n\n"
        "```python\nfor _ in range(2):\n    print('hi')\n```\n",
        "hi\nhi",
    ),
    Shape(
        "think mentioned in prose",
        "I think this is what you want:\n\n```python\nprint(6 * 7)\n```\n",
        "42",
    ),
    Shape("python_tag", "<|python_tag|>print(6 * 7)", "42"),
    Shape("python_tag eom", "<|python_tag|>x = 6\ny = 7\nprint(x * y)<|eom_id|>", "42"),
    Shape("python_tag after prose", "Let me calculate.\n<|python_tag|>\nprint(6 * 7)\n<|eot_id|>", "42"),
    Shape(
        "python_tag with header",
        "<|start_header_id|>assistant<|end_header_id|>\n\n<|python_tag|>print(6 * 7)<|eom_id|>",
        "42",
    ),
    Shape(
        "channel final",
        "<|channel|>final<|message|>```python\nprint(6 * 7)\n```<|return|>",
        "42",
    ),
    Shape(
        "channel analysis with draft then final",
        "<|channel|>analysis<|message|>Draft:\n```python\nprint(41)\n```\nOff by one.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Here it is:\n\n```python\nprint(42)\n```<|return|>",
        "42",
    ),
    Shape(
        "channel commentary to python",
        "<|channel|>analysis<|message|>We need to run code.<|end|><|start|>assistant<|channel|>commentary "
        "to=python <|constrain|>code<|message|>x = 6\nprint(x * 7)<|call|>",
        "42",
    ),
    Shape(
        "channel final raw code",
        "<|start|>assistant<|channel|>final<|message|>print('raw final')<|return|>",
        "raw final",
    ),
    Shape("im_start header", "<|im_start|>assistant\n```python\nprint(6 * 7)\n```\n<|im_end|>", "42"),
    Shape("start_of_turn header", "<start_of_turn>model\n```python\nprint(6 * 7)\n```<end_of_turn>", "42"),
    Shape("bracket PYTHON", "[PYTHON]\nprint(6 * 7)\n[/PYTHON]", "42"),
    Shape(
        "bracket PYTHON with prose",
        "Solution:\n[PYTHON]\ndef f():\n    print(42)\nf()\n[/PYTHON]\nDone.",
        "42",
    ),
    Shape("bracket PYTHON inline", "[PYTHON]print(6 * 7)[/PYTHON]", "42"),
    Shape("bracket CODE", "[CODE]\nprint(6 * 7)\n[/CODE]", "42"),
    Shape("bracket BEGIN END", "[BEGIN]\nprint(6 * 7)\n[END]", "42"),
    Shape("bracket bbcode", "[code=python]\nx = [6, 7]\nprint(x[0] * x[1])\n[/code]", "42"),
    Shape("bracket with fence", "[PYTHON]\n```python\nprint(6 * 7)\n```\n[/PYTHON]", "42"),
    Shape("inst prefix", "[/INST] ```python\nprint(6 * 7)\n``` </s>", "42"),
    Shape("interpreter action tokens", "<|action_start|><|interpreter|>\nprint(6 * 7)\n<|action_end|>", "42"),
    Shape("functionary prompt", ">>>python\nprint(6 * 7)", "42"),
    Shape("latex lstlisting", "\\begin{lstlisting}[language=Python]\nprint(6 * 7)\n\\end{lstlisting}", "42"),
    Shape(
        "latex minted",
        "\\begin{minted}{python}\ndef f(n):\n    return n * 7\nprint(f(6))\n\\end{minted}\n",
        "42",
    ),
    Shape("begin_code latex style", "\\begin{code}\nprint(6 * 7)\n\\end{code}", "42"),
    Shape("org source block", "#+BEGIN_SRC python :results output\nprint(6 * 7)\n#+END_SRC\n", "42"),
    Shape(
        "rst code-block",
        "The program:\n\n.. code-block:: python\n\n    x = 6\n    print(x * 7)\n\nIt prints 42.\n",
        "42",
    ),
    Shape("asciidoc source", "[source,python]\n----\nprint(6 * 7)\n----\n", "42"),
    Shape("jira code macro", "{code:python}\nprint(6 * 7)\n{code}\n", "42"),
)

TOOLS: tuple[Shape, ...] = (
    Shape("json python arguments", '{"name": "python", "arguments": {"code": "print(6 * 7)"}}', "42"),
    Shape(
        "json arguments multi line code",
        r'{"name": "python", "arguments": {"code": "total = 0\nfor i in range(4):\n'
        r'    total += i * 7\nprint(total)"}}',
        "42",
    ),
    Shape(
        "json arguments pretty",
        '{\n  "name": "execute_python",\n  "arguments": {\n    "code": "print(\\"pretty\\")"\n  }\n}\n',
        "pretty",
    ),
    Shape(
        "json arguments as string",
        r'{"name": "python", "arguments": "{\"code\": \"print(6 * 7)\"}"}',
        "42",
    ),
    Shape(
        "json arguments as string with newlines",
        r'{"name": "python", "arguments": "{\"code\": \"x = 6\\nif x:\\n    print(\\\"x is\\\", x)\"}"}',
        "x is 6",
    ),
    Shape("json parameters", '{"name": "python", "parameters": {"code": "print(6 * 7)"}}', "42"),
    Shape(
        "json type function",
        '{"type": "function", "name": "run_python", "parameters": {"code": "print(42)"}}',
        "42",
    ),
    Shape("json tool and input", '{"tool": "python", "input": "print(6 * 7)"}', "42"),
    Shape("json tool_input object", '{"tool": "python_repl", "tool_input": {"query": "print(6 * 7)"}}', "42"),
    Shape("json action", '{"action": "python", "action_input": "print(6 * 7)"}', "42"),
    Shape(
        "json action in fence",
        'Thought: I should calculate.\n\nAction:\n```json\n{\n  "action": "python_repl",\n'
        '  "action_input": "print(6 * 7)"\n}\n```\n',
        "42",
    ),
    Shape("json code only", '{"code": "print(6 * 7)"}', "42"),
    Shape("json code only in fence", '```json\n{"code": "x = 6\\nprint(x * 7)"}\n```', "42"),
    Shape("json code only in bare fence", '```\n{"code": "print(6 * 7)"}\n```', "42"),
    Shape("json code only in python fence", '```python\n{"code": "print(6 * 7)"}\n```', "42"),
    Shape(
        "json language and code",
        r'{"language": "python", "code": "def f():\n    return 42\n\nprint(f())"}',
        "42",
    ),
    Shape("json python key", '{"python": "print(6 * 7)"}', "42"),
    Shape(
        "json thought and code",
        '{"thought": "Multiply the numbers.", "code": "print(6 * 7)"}',
        "42",
    ),
    Shape(
        "json explanation after code",
        r'{"code": "for c in \"ab\":\n    print(c)", "explanation": "Prints each character of the string."}',
        "a\nb",
    ),
    Shape(
        "json code with fence in value",
        r'{"answer": "```python\nprint(6 * 7)\n```"}',
        "42",
    ),
    Shape(
        "json code value fenced",
        r'{"name": "python", "arguments": {"code": "```python\nx = 42\nprint(x)\n```"}}',
        "42",
    ),
    Shape(
        "json prose around",
        'I will call the tool now.\n\n{"name": "python", "arguments": {"code": "print(6 * 7)"}}\n\n'
        "The result follows.",
        "42",
    ),
    Shape("json list of one call", '[{"name": "python", "arguments": {"code": "print(6 * 7)"}}]', "42"),
    Shape(
        "json list with another tool",
        '[{"name": "search", "arguments": {"query": "6 times 7"}}, '
        '{"name": "python", "arguments": {"code": "print(6 * 7)"}}]',
        "42",
    ),
    Shape(
        "json openai tool_calls",
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "call_a1", "type": "function", '
        r'"function": {"name": "python", "arguments": "{\"code\": \"print(6 * 7)\"}"}}]}',
        "42",
    ),
    Shape(
        "json openai tool_calls only",
        '{"tool_calls": [{"type": "function", "function": {"name": "python", '
        r'"arguments": {"code": "n = 42\nprint(n)"}}}]}',
        "42",
    ),
    Shape(
        "json openai function_call",
        r'{"function_call": {"name": "python", "arguments": "{\n  \"code\": \"print(6 * 7)\"\n}"}}',
        "42",
    ),
    Shape(
        "json anthropic tool_use",
        '{"type": "tool_use", "id": "toolu_01", "name": "python", "input": {"code": "print(6 * 7)"}}',
        "42",
    ),
    Shape("json missing closing braces", '{"name": "python", "arguments": {"code": "print(6 * 7)"', "42"),
    Shape(
        "json raw newlines in string",
        '{"name": "python", "arguments": {"code": "x = 6\nfor i in range(2):\n    print(x + i)"}}',
        "6\n7",
    ),
    Shape("json trailing comma", '{"name": "python", "arguments": {"code": "print(6 * 7)",},}', "42"),
    Shape("json single quotes", "{'name': 'python', 'arguments': {'code': 'print(6 * 7)'}}", "42"),
    Shape(
        "json triple quoted code",
        '{"name": "python", "arguments": {"code": """\nx = 6\nprint(x * 7)\n"""}}',
        "42",
    ),
    Shape("json non-ascii escapes", r'{"code": "print(\"\u00fcber \u65e5\u672c\")"}', "über 日本"),
    Shape("json code with escaped newline literal", r'{"code": "print(\"a\\nb\")"}', "a\nb"),
    Shape("json code lines list", '{"code": ["x = 6", "if x:", "    print(x * 7)"]}', "42"),
    Shape(
        "tool_call hermes",
        '<tool_call>\n{"name": "python", "arguments": {"code": "print(6 * 7)"}}\n</tool_call>',
        "42",
    ),
    Shape(
        "tool_call hermes after think",
        "<think>\nI need the tool: print(1)?\n</think>\n\n<tool_call>\n"
        r'{"name": "python", "arguments": {"code": "x = 6\nprint(x * 7)"}}'
        "\n</tool_call><|im_end|>",
        "42",
    ),
    Shape(
        "tool_call unclosed",
        'Sure.\n<tool_call>\n{"name": "python", "arguments": {"code": "print(6 * 7)"}}\n',
        "42",
    ),
    Shape("tool_call raw code", "<tool_call>\nprint(6 * 7)\n</tool_call>", "42"),
    Shape(
        "tool_call in fence",
        '```xml\n<tool_call>\n{"name": "python", "arguments": {"code": "print(6 * 7)"}}\n</tool_call>\n```',
        "42",
    ),
    Shape(
        "tool_call qwen coder",
        "<tool_call>\n<function=python>\n<parameter=code>\nx = 6\nif x > 5:\n    print(x * 7)\n"
        "</parameter>\n</function>\n</tool_call>",
        "42",
    ),
    Shape(
        "tool_call glm",
        "<tool_call>python\n<arg_key>code</arg_key>\n<arg_value>print(6 * 7)</arg_value>\n</tool_call>",
        "42",
    ),
    Shape("llama function tag", '<function=python>{"code": "print(6 * 7)"}</function>', "42"),
    Shape(
        "mistral tool calls", '[TOOL_CALLS] [{"name": "python", "arguments": {"code": "print(6 * 7)"}}]', "42"
    ),
    Shape("mistral tool calls args", '[TOOL_CALLS]python[ARGS]{"code": "print(6 * 7)"}', "42"),
    Shape(
        "phi tool call tokens",
        '<|tool_call|>[{"name": "python", "arguments": {"code": "print(6 * 7)"}}]<|/tool_call|>',
        "42",
    ),
    Shape(
        "kimi tool call tokens",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.python:0<|tool_call_argument_begin|>"
        '{"code": "print(6 * 7)"}<|tool_call_end|><|tool_calls_section_end|>',
        "42",
    ),
    Shape(
        "deepseek tool call tokens",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n```json\n"
        '{"code": "print(6 * 7)"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "42",
    ),
    Shape(
        "deepseek v3.1 tool call tokens",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>python<｜tool▁sep｜>"
        '{"code": "print(6 * 7)"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "42",
    ),
    Shape(
        "dsml function calls",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="python">\n'
        '<｜DSML｜parameter name="code" string="true">x = 6\nprint(x * 7)</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "42",
    ),
    Shape(
        "xml invoke",
        '<invoke name="python">\n<parameter name="code">print(6 * 7)</parameter>\n</invoke>',
        "42",
    ),
    Shape(
        "xml function_calls",
        'I\'ll run it.\n\n<function_calls>\n<invoke name="python">\n<parameter name="code">\n'
        "for i in range(3):\n    if i < 2:\n        print(i)\n</parameter>\n</invoke>\n</function_calls>",
        "0\n1",
    ),
    Shape(
        "xml tool use",
        "<tool_use>\n<name>python</name>\n<arguments>\n<code>\nprint(6 * 7)\n</code>\n</arguments>\n"
        "</tool_use>",
        "42",
    ),
    Shape(
        "xml invoke truncated",
        '<function_calls>\n<invoke name="python">\n<parameter name="code">print(6 * 7)\n',
        "42",
    ),
    Shape(
        "command r action",
        'Action: ```json\n[\n    {\n        "tool_name": "python_interpreter",\n'
        '        "parameters": {\n            "code": "print(6 * 7)"\n        }\n    }\n]\n```',
        "42",
    ),
    Shape(
        "react action input", "Thought: I must multiply.\nAction: python\nAction Input: print(6 * 7)", "42"
    ),
    Shape(
        "react with observation",
        "Thought: use Python.\nAction: python\nAction Input: print(6 * 7)\nObservation: 42\n"
        "Thought: I now know the final answer.\nFinal Answer: 42",
        "42",
    ),
    Shape(
        "react action input fence",
        "Thought: use Python.\nAction: python\nAction Input:\n```python\nx = 6\nprint(x * 7)\n```\n",
        "42",
    ),
    Shape(
        "react action input multi line",
        "Action: Python REPL\nAction Input: x = 6\ny = 7\nprint(x * y)\nObservation: ",
        "42",
    ),
    Shape(
        "react action input json",
        'Action: python\nAction Input: {"code": "print(6 * 7)"}\n',
        "42",
    ),
    Shape("react action input backticks", "Action: python\nAction Input: `print(6 * 7)`\n", "42"),
    Shape(
        "smolagents thought code",
        "Thought: I will compute the product.\nCode:\n```py\nprint(6 * 7)\n```<end_code>",
        "42",
    ),
    Shape(
        "smolagents with observation",
        "Thought: compute.\nCode:\n```py\nx = 6 * 7\nprint(x)\n```<end_code>\nObservation: 42\n",
        "42",
    ),
    Shape(
        "smolagents code tags", "Thought: I will compute the product.\n<code>\nprint(6 * 7)\n</code>", "42"
    ),
    Shape("thought and raw code", "Thought: multiply the two numbers.\nCode:\nx = 6\nprint(x * 7)\n", "42"),
    Shape("code label raw", "Code:\nprint(6 * 7)\n", "42"),
    Shape("code label and explanation", "Code: print(6 * 7)\nExplanation: It multiplies 6 by 7.", "42"),
    Shape(
        "tool call as python function with code",
        "```tool_code\nnumbers = [6, 7]\nprint(numbers[0] * numbers[1])\n```\n```tool_outputs\n42\n```\n",
        "42",
    ),
    Shape(
        "yaml code block scalar",
        "tool: python\ncode: |\n  x = 6\n  if x:\n      print(x * 7)\n",
        "42",
    ),
    Shape(
        "yaml fence with code",
        "```yaml\nname: python\narguments:\n  code: |\n    for i in range(2):\n        print(i)\n```\n",
        "0\n1",
    ),
)

RAW: tuple[Shape, ...] = (
    Shape("raw one line", "print(6 * 7)", "42"),
    Shape("raw tiny", "print(42)\n", "42"),
    Shape("raw semicolons", "a=6;b=7;print(a*b)", "42"),
    Shape(
        "raw program",
        "import math\n\n\ndef area(w, h):\n    return math.prod((w, h))\n\n\nif __name__ == '__main__':\n"
        "    print(area(6, 7))\n",
        "42",
    ),
    Shape(
        "raw class",
        "class Counter:\n    def __init__(self):\n        self.n = 40\n\n    def step(self):\n"
        "        self.n += 1\n"
        "        return self\n\n\nprint(Counter().step().step().n)",
        "42",
    ),
    Shape("raw leading and trailing blank lines", "\n\n  \nprint(6 * 7)\n\n \n", "42"),
    Shape("raw leading space", " print(6 * 7)", "42"),
    Shape("raw whole indented", "    x = 6\n    for i in range(1):\n        print(x * 7)\n", "42"),
    Shape("raw shebang", "#!/usr/bin/env python3\n\nprint(6 * 7)\n", "42"),
    Shape(
        "raw shebang after prose",
        "Here is the script:\n\n#!/usr/bin/env python3\nimport sys\nsys.stdout.write('42')\n",
        "42",
    ),
    Shape("raw encoding line", "# -*- coding: utf-8 -*-\nprint('äöü')\n", "äöü"),
    Shape("raw module docstring", '"""Print the answer."""\n\nprint(6 * 7)\n', "42"),
    Shape(
        "raw comments first",
        "# This program prints the answer.\n# It needs no input.\n\nprint(6 * 7)\n",
        "42",
    ),
    Shape(
        "raw comment like a file name",
        "# main.py\nfrom functools import reduce\n\nprint(reduce(lambda a, b: a * b, [2, 3, 7]))\n",
        "42",
    ),
    Shape("raw after sentence", "Here is the program you asked for:\n\nprint(6 * 7)\n", "42"),
    Shape("raw after sentence without blank line", "Sure, here you go:\nx = 6\nprint(x * 7)", "42"),
    Shape("raw before sentence", "print(6 * 7)\n\nThis prints 42.", "42"),
    Shape("raw before sentence without blank line", "x = 6\nprint(x * 7)\nThis will print 42.", "42"),
    Shape(
        "raw between sentences",
        "You can do it with a loop.\n\nfor i in range(3):\n    print(i)\n\nThe loop runs three times.",
        "0\n1\n2",
    ),
    Shape(
        "raw explanation bullets",
        "def f(a, b):\n    return a * b\n\nprint(f(6, 7))\n\nExplanation:\n- `f` multiplies its arguments.\n"
        "- The result, 42, is printed.\n",
        "42",
    ),
    Shape(
        "raw explanation numbered",
        "x = [3, 1, 2]\nprint(sorted(x))\n\nExplanation:\n\n1. The list is defined.\n"
        "2. sorted() returns a new list.\n"
        "3. print() shows it.\n",
        "[1, 2, 3]",
    ),
    Shape("raw with output", "print(6 * 7)\n\nOutput:\n42\n", "42"),
    Shape("raw with output text", "print('Hello,', 'world!')\n\nOutput:\nHello, world!\n", "Hello, world!"),
    Shape(
        "raw with rule",
        "Here it is.\n\n---\n\nprint(6 * 7)\n\n---\n\nLet me know if you need anything else!",
        "42",
    ),
    Shape("raw with boxed", "print(6 * 7)\n\nThe answer is $\\boxed{42}$.", "42"),
    Shape("raw final answer label", "Final answer:\n\nprint(6 * 7)\n", "42"),
    Shape("raw answer label same line", "Answer: print(6 * 7)", "42"),
    Shape("raw sentence same line", "Sure! Here is the code: print(6 * 7)", "42"),
    Shape("raw indented after prose", "The program is:\n\n    x = 6\n    y = 7\n    print(x * y)\n", "42"),
    Shape(
        "raw indented between prose",
        "Use a function:\n\n    def f(n):\n        return n * 7\n\n    print(f(6))\n\nThe call prints 42.\n",
        "42",
    ),
    Shape("raw heading", "## Solution\n\nprint(6 * 7)\n", "42"),
    Shape(
        "raw heading and indented",
        "# Solution\n\n    total = 40\n    total += 2\n    print(total)\n\n# Notes\n\nNone.",
        "42",
    ),
    Shape("raw bold heading", "**Solution:**\n\nx = 6\nprint(x * 7)\n\n**Result:** 42", "42"),
    Shape("raw setext heading", "Solution\n========\n\nprint(6 * 7)\n", "42"),
    Shape("raw python label", "python\nprint(6 * 7)\n", "42"),
    Shape("raw Python label", "Python\n\nx = 6\nprint(x * 7)", "42"),
    Shape("raw Python code label", "Python code:\nprint(6 * 7)", "42"),
    Shape("raw copy code label", "python\nCopy code\nprint(6 * 7)\n", "42"),
    Shape("raw file marker", "=== main.py ===\nprint('marker')\n", "marker"),
    Shape("inline code only", "`print(6 * 7)`", "42"),
    Shape("inline code in sentence", "You can simply run `print(6 * 7)`.", "42"),
    Shape("inline double backticks", "``print(6 * 7)``", "42"),
    Shape("inline code with semicolons", "The one-liner is `x = 6; print(x * 7)`, which prints 42.", "42"),
    Shape("inline code bold", "**`print(6 * 7)`**", "42"),
    Shape("inline code bullet", "- `print(6 * 7)`", "42"),
    Shape("inline code per line", "`x = 6`\n`y = 7`\n`print(x * y)`", "42"),
    Shape(
        "inline code numbered list", "Type these lines:\n\n1. `x = 6`\n2. `y = 7`\n3. `print(x * y)`\n", "42"
    ),
    Shape(
        "inline code with names around", "Use the `print` function and the `*` operator: `print(6 * 7)`", "42"
    ),
    Shape("line numbers two spaces", "1  x = 6\n2  y = 7\n3  print(x * y)\n", "42"),
    Shape("line numbers colon", "1: x = 6\n2: for i in range(1):\n3:     print(x * 7)\n", "42"),
    Shape("line numbers bar", "1| x = 6\n2| if x:\n3|     print(x * 7)\n", "42"),
    Shape("line numbers spaced bar", "  1 | x = 6\n  2 | if x:\n  3 |     print(x * 7)\n", "42"),
    Shape("line numbers tab", "     1\tx = 6\n     2\t\n     3\tprint(x * 7)\n", "42"),
    Shape("line numbers dot", "1. x = 6\n2. y = 7\n3. print(x * y)\n", "42"),
    Shape(
        "line numbers in fence",
        "```python\n1  def f(n):\n2      return n * 7\n3\n4  print(f(6))\n```\n",
        "42",
    ),
    Shape(
        "line numbers to ten",
        "```\n 1: a = 1\n 2: b = 2\n 3: c = 3\n 4: d = 4\n 5: e = 5\n 6: f = 6\n 7: g = 7\n 8: h = 8\n"
        " 9: i = 6\n"
        "10: print(a + b + c + d + e + f + g + h + i)\n```",
        "42",
    ),
    Shape("ipython prompt", "In [1]: print(6 * 7)\n42\n", "42"),
    Shape(
        "ipython prompts",
        "In [1]: x = 6\n\nIn [2]: for i in range(2):\n   ...:     print(x + i)\n   ...:\n6\n7\n\n"
        "In [3]: print(x * 7)\n42\n",
        "6\n7\n42",
    ),
    Shape("ipython prompt in fence", "```python\nIn [1]: x = 6\nIn [2]: print(x * 7)\n42\n```", "42"),
    Shape("doctest prompt", ">>> print(6 * 7)\n42\n", "42"),
    Shape("doctest prompts", ">>> x = 6\n>>> y = 7\n>>> print(x * y)\n42\n", "42"),
    Shape(
        "doctest with continuation",
        ">>> def f(n):\n...     return n * 7\n...\n>>> print(f(6))\n42\n",
        "42",
    ),
    Shape(
        "doctest in fence",
        "```python\n>>> for i in range(2):\n...     print('i', i)\n...\ni 0\ni 1\n>>> print('done')\n"
        "done\n```\n",
        "i 0\ni 1\ndone",
    ),
    Shape("doctest pycon", "```pycon\n>>> import math\n>>> print(math.isqrt(1764))\n42\n```", "42"),
    Shape(
        "doctest after prose",
        "In the interpreter:\n\n>>> print(max([4, 42]))\n42\n\nThat is the maximum.",
        "42",
    ),
    Shape("doctest without space", ">>>print(6*7)\n42", "42"),
    Shape(
        "doctest in docstring of program",
        '```python\ndef f(n):\n    """Times seven.\n\n    >>> f(6)\n    42\n    """\n'
        "    return n * 7\n\n\nprint(f(6))\n```",
        "42",
    ),
    Shape(
        "diff raw new file", "--- /dev/null\n+++ b/main.py\n@@ -0,0 +1,2 @@\n+x = 6\n+print(x * 7)\n", "42"
    ),
    Shape(
        "diff fence new file",
        "```diff\n--- /dev/null\n+++ b/main.py\n@@ -0,0 +1,4 @@\n+def f(n):\n+    return n * 7\n+\n"
        "+print(f(6))\n```\n",
        "42",
    ),
    Shape(
        "diff git new file",
        "```diff\ndiff --git a/main.py b/main.py\nnew file mode 100644\nindex 0000000..e69de29\n"
        "--- /dev/null\n"
        "+++ b/main.py\n@@ -0,0 +1,1 @@\n+print('from a patch')\n\\ No newline at end of file\n```\n",
        "from a patch",
    ),
    Shape("diff fence plus only", "```diff\n+x = 6\n+if x:\n+    print(x * 7)\n```", "42"),
    Shape("magic time", "```python\n%%time\nprint(6 * 7)\n```", "42"),
    Shape(
        "magic matplotlib",
        "```python\n%matplotlib inline\nimport math\nprint(math.comb(9, 2) + 6)\n```",
        "42",
    ),
    Shape(
        "magic pip",
        "```python\n!pip install -q statistics\nimport statistics\nprint(statistics.median([1, 42, 99]))\n"
        "```",
        "42",
    ),
    Shape("magic percent pip", "```python\n%pip install statistics\n\nprint(6 * 7)\n```", "42"),
    Shape("magic raw pip", "!pip install statistics\nx = 6\nprint(x * 7)\n", "42"),
    Shape(
        "pip line without bang",
        "```python\npip install statistics\n\nimport statistics\nprint(statistics.mode([42, 42, 1]))\n```",
        "42",
    ),
    Shape(
        "magic percent in string",
        '```python\nn = 6\ntext = """\n%d items\n""" % (n * 7)\nprint(text.strip())\n```',
        "42 items",
    ),
    Shape(
        "no-break space indentation",
        "for i in range(2):\n\u00a0\u00a0\u00a0\u00a0print(i)\n",
        "0\n1",
    ),
    Shape(
        "no-break space in fence",
        "```python\nx\u00a0=\u00a06\nif x:\n\u00a0\u00a0\u00a0 print(x\u00a0* 7)\n```",
        "42",
    ),
    Shape("zero-width space", "```python\n\u200bprint(6 * 7)\u200b\n```", "42"),
    Shape("zero-width space raw", "\u200bx = 6\nprint(x\u200b * 7)\n", "42"),
    Shape("zero-width no-break between lines", "```python\nx = 6\n\ufeff\nprint(x * 7)\n```", "42"),
    Shape("ideographic space indentation", "```python\nif True:\n\u3000\u3000print('宽')\n```", "宽"),
    Shape("smart double quotes", "```python\nprint(“forty-two”)\n```", "forty-two"),
    Shape("smart single quotes", "name = ‘Ada’\nprint(‘Hello,’, name)\n", "Hello, Ada"),
    Shape(
        "smart quotes mixed use", "```python\nx = “a”\nfor i in range(2):\n    print(x, i)\n```", "a 0\na 1"
    ),
    Shape("tabs", "for i in range(2):\n\tfor j in range(2):\n\t\tprint(i, j)\n", "0 0\n0 1\n1 0\n1 1"),
    Shape(
        "tabs in fence",
        "```python\ndef f(n):\n\tif n:\n\t\treturn n * 7\n\treturn 0\n\nprint(f(6))\n```",
        "42",
    ),
    Shape("form feed", "def f():\n    return 42\n\f\nprint(f())\n", "42"),
    Shape("crlf raw", "x = 6\r\nif x:\r\n    print(x * 7)\r\n", "42"),
    Shape("literal newlines", r"x = 6\ny = 7\nprint(x * y)", "42"),
    Shape("literal newlines with block", r"for i in range(2):\n    print(i)\nprint('end')\n", "0\n1\nend"),
    Shape("literal newlines in fence", r"```python\nx = 6\nprint(x * 7)\n```", "42"),
    Shape("literal newlines inside fence lines", "```python\nx = 6\\nif x:\\n    print(x * 7)\n```", "42"),
    Shape("literal newlines and tabs", r"def f(n):\n\treturn n * 7\n\nprint(f(6))", "42"),
    Shape("literal newlines and quotes", r"name = \"Ada\"\nprint(name)", "Ada"),
    Shape("quoted python string", r"'x = 6\nprint(x * 7)'", "42"),
    Shape("quoted json string", r'"for i in range(2):\n    print(\"i\", i)\n"', "i 0\ni 1"),
    Shape("quoted json string with fence", r'"```python\nprint(6 * 7)\n```"', "42"),
    Shape("quoted one line", '"print(6 * 7)"', "42"),
    Shape("quoted string assignment", 'code = """\nx = 6\nprint(x * 7)\n"""\nexec(code)\n', "42"),
    Shape("double escaped json string", r'"\"x = 6\\nprint(x * 7)\""', "42"),
    Shape(
        "raw fence in string",
        "template = '''\n```python\nprint(1)\n```\n'''\nprint(template.strip())\n",
        "```python\nprint(1)\n```",
    ),
    Shape(
        "raw docstring with fence",
        'def f(n):\n    """Multiply.\n\n    ```\n    f(6)\n    ```\n    """\n    return n * 7\n\n\n'
        "print(f(6))\n",
        "42",
    ),
    Shape(
        "raw prose in docstring",
        '"""\nHere is the program:\n\nThis prints 42.\n"""\nprint(42)\n',
        "42",
    ),
    Shape(
        "prose that looks like code",
        "For example, if x = 5 is the answer, we would print it.\n\n```python\nx = 42\nprint(x)\n```\n",
        "42",
    ),
    Shape(
        "prose line for example",
        "for example\n\nfor i in range(2):\n    print(i)\n",
        "0\n1",
    ),
    Shape(
        "prose lines starting with keywords",
        "import the module first, then call it.\nreturn values are printed.\n\nimport math\n"
        "print(math.ceil(41.2))\n\n"
        "if you need more digits, use round.\n",
        "42",
    ),
    Shape(
        "prose assignment words",
        "x = 6 is our input.\n\n```\nx = 6\nprint(x * 7)\n```\n\ny = 42 is the result.",
        "42",
    ),
    Shape("bullet raw code", "* x = 6\n* y = 7\n* print(x * y)\n", "42"),
    Shape(
        "table then fence",
        "| Name | Value |\n|------|-------|\n| a    | 6     |\n| b    | 7     |\n\n```python\n"
        "a, b = 6, 7\nprint(a * b)\n```\n",
        "42",
    ),
    Shape(
        "raw then table",
        "a, b = 6, 7\nprint(a * b)\n\n| Name | Meaning |\n| --- | --- |\n| `a` | first factor |\n"
        "| `b` | second factor |\n",
        "42",
    ),
    Shape(
        "fence then table with code cells",
        "```python\nprint(len('abc'))\n```\n\n| Call | Result |\n|---|---|\n| `len('abc')` | 3 |\n"
        "| `len('')` | 0 |\n",
        "3",
    ),
    Shape(
        "notebook json",
        '{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], '
        '"source": ["x = 6\\n", "print(x * 7)"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        "42",
    ),
    Shape(
        "notebook json two cells",
        '```json\n{\n "cells": [\n  {"cell_type": "markdown", "metadata": {}, "source": ["# Answer"]},\n'
        '  {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["x = 6"]},\n'
        '  {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["print(x * 7)"]}\n ],\n'
        ' "metadata": {"kernelspec": {"name": "python3"}},\n "nbformat": 4,\n "nbformat_minor": 5\n}\n```\n',
        "42",
    ),
    Shape(
        "notebook json source string",
        '{"cells": [{"cell_type": "code", "source": "for i in range(2):\\n    print(i)", "outputs": '
        '[{"output_type": "stream", "text": "0\\n1\\n"}]}], "nbformat": 4}',
        "0\n1",
    ),
    Shape("percent cells", "# %%\nx = 6\n\n# %%\nprint(x * 7)\n", "42"),
    Shape("percent cells markdown", "# %% [markdown]\n# The answer\n\n# %%\nprint(6 * 7)\n", "42"),
    Shape(
        "chinese prose fence",
        "好的，下面是代码：\n\n```python\nprint('你好，世界')\n```\n\n希望对你有帮助！",
        "你好，世界",
    ),
    Shape("chinese prose raw", "下面是程序：\n\nx = 6\nprint(x * 7)\n\n运行后输出42。", "42"),
    Shape(
        "japanese prose raw",
        "こちらがコードです。\nfor i in range(2):\n    print('回', i)\n以上です。",
        "回 0\n回 1",
    ),
    Shape("korean prose fence", "다음은 코드입니다:\n```python\nprint('안녕하세요')\n```\n", "안녕하세요"),
    Shape("arabic prose fence", "إليك البرنامج:\n\n```python\nprint('مرحبا')\n```\n\nيطبع التحية.", "مرحبا"),
    Shape("hebrew prose raw", "הנה הקוד:\n\nprint(6 * 7)\n\nזה מדפיס 42.", "42"),
    Shape("rtl marks around fence", "\u200fإليك الكود:\u200f\n\n```python\nprint(6 * 7)\n```\u200f\n", "42"),
    Shape("russian prose fence", "Вот программа:\n\n```python\nprint('Привет, мир!')\n```\n", "Привет, мир!"),
    Shape("hindi prose raw", "यह रहा कोड:\n\nprint('नमस्ते')\n", "नमस्ते"),
    Shape("german prose raw", "Hier ist das Programm:\n\nfür = 6\nprint(für * 7)\n\nEs gibt 42 aus.", "42"),
    Shape(
        "french prose fence",
        "Voici le code :\n\n```python\nprint('déjà vu')\n```\n\nIl affiche « déjà vu ».",
        "déjà vu",
    ),
    Shape("emoji prose fence", "Let's go! 🚀✨\n\n```python\nprint('🐍' * 3)\n```\n\nEnjoy! 🎉", "🐍🐍🐍"),
    Shape("emoji prose raw", "✅ Here's your code 👇\n\nprint('👍 ok')\n\n🎯 Prints a thumbs up.", "👍 ok"),
    Shape(
        "async program",
        "```python\nimport asyncio\n\n\nasync def work(n):\n    await asyncio.sleep(0)\n    return n * 7\n"
        "\n\n"
        "async def main():\n    print(await work(6))\n\n\nasyncio.run(main())\n```\n",
        "42",
    ),
    Shape(
        "async raw",
        "import asyncio\n\nasync def main():\n"
        "    results = await asyncio.gather(*(asyncio.sleep(0, i) for i in (4, 2)))\n"
        "    print(results)\n\nasyncio.run(main())",
        "[4, 2]",
    ),
    Shape("walrus", "if (n := len('abcdef')) > 5:\n    print(n * 7)\n", "42"),
    Shape(
        "walrus while",
        "```python\nit = iter([40, 41, 42, 0])\nwhile (v := next(it)):\n    last = v\nprint(last)\n```",
        "42",
    ),
    Shape(
        "match statement",
        "command = ['go', 'north']\nmatch command:\n    case ['go', where]:\n"
        "        print('going', where)\n    case _:\n"
        "        print('what?')\n",
        "going north",
    ),
    Shape(
        "match in fence",
        "```python\ndef f(x):\n    match x:\n        case int() if x > 0:\n            return 'positive'\n"
        "        case _:\n"
        "            return 'other'\n\n\nprint(f(1), f('a'))\n```",
        "positive other",
    ),
    Shape(
        "decorator and generator raw",
        "from functools import lru_cache\n\n@lru_cache(maxsize=None)\ndef fib(n):\n"
        "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n"
        "print(*(fib(i) for i in range(8)))",
        "0 1 1 2 3 5 8 13",
    ),
    Shape(
        "raw line continuation",
        "total = 20 + \\\n    22\nprint(total)\nvalues = [\n    1,\n    2,\n]\nprint(sum(values))\n",
        "42\n3",
    ),
    Shape(
        "raw try except else",
        "try:\n    value = int('42')\nexcept ValueError:\n    print('bad')\nelse:\n    print(value)\n"
        "finally:\n    print('end')\n",
        "42\nend",
    ),
    Shape(
        "raw optional import",
        "try:\n    import a_module_nobody_has as fast\nexcept ImportError:\n    fast = None\n\n"
        "print('fast' if fast else 'slow')\n",
        "slow",
    ),
    Shape(
        "raw type alias and annotations",
        "answer: int = 6 * 7\nnames: list[str] = []\nprint(answer, names)\n",
        "42 []",
    ),
    Shape("raw f-string nested quotes", "d = {'k': 42}\nprint(f\"value: {d['k']:>4}|\")\n", "value:   42|"),
    Shape(
        "raw print to stdout by sys",
        "import sys\n\nprint('to stderr', file=sys.stderr)\nprint(42)\nsys.exit(0)\n",
        "42",
    ),
    Shape(
        "raw blank line in function",
        "Here's the function and a call.\n\ndef f(n):\n    total = 0\n\n    for i in range(n):\n\n"
        "        total += i\n\n"
        "    return total\n\n\nprint(f(4))\n\nHope that helps!",
        "6",
    ),
    Shape("raw with end token", "x = 6\nprint(x * 7)\n<|im_end|>", "42"),
    Shape("raw with end token on the line", "print(6 * 7)</s>", "42"),
    Shape("raw with stray closing tag and prose", "print(6 * 7)\n</code>\nThe code above prints 42.", "42"),
)

NONE: tuple[Shape, ...] = (
    Shape("none empty", "", None),
    Shape("none whitespace", "  \n\n\t\n", None),
    Shape("none refusal", "I'm sorry, but I can't help with that.", None),
    Shape(
        "none refusal long",
        "I cannot write this program. It could harm others; please ask for something else instead.",
        None,
    ),
    Shape(
        "none question", "Could you tell me which file you want to read, and what should be printed?", None
    ),
    Shape("none prose answer", "The answer is 42.", None),
    Shape("none number only", "42", None),
    Shape("none yes", "Yes", None),
    Shape("none chinese prose", "抱歉，我无法完成这个请求。", None),
    Shape("none emoji", "👍", None),
    Shape(
        "none steps",
        "1. Open the settings.\n2. Click on Network.\n3. Choose Reset.\n\nfor more help, see the manual.",
        None,
    ),
    Shape(
        "none mention of function",
        "You can use the `len` function to get the number of items in a list.",
        None,
    ),
    Shape(
        "none prose with keywords",
        "import duties apply if you order from abroad, and returns are free.",
        None,
    ),
    Shape("none letter", "Dear Ada,\n\nthank you for your letter.\n\nKind regards,\nCharles", None),
    Shape("none heading only", "# Solution\n\n## Overview\n\nThere is nothing to run here.", None),
    Shape("none empty fence", "```python\n```", None),
    Shape("none opening only", "```python", None),
    Shape("none truncated call", "```python\nprint(", None),
    Shape("none truncated def", "Here is the code:\n\n```python\ndef compute(", None),
    Shape("none json data", '{"name": "Ada", "age": 36, "tags": ["math", "code"]}', None),
    Shape("none json fence", '```json\n{"answer": 42, "unit": null}\n```', None),
    Shape("none json list", "[1, 2, 3]", None),
    Shape(
        "none search tool call",
        '<tool_call>\n{"name": "search", "arguments": {"query": "python print"}}\n</tool_call>',
        None,
    ),
    Shape("none final answer tool call", '{"name": "final_answer", "arguments": {"answer": "42"}}', None),
    Shape("none bash tool call", '{"name": "bash", "arguments": {"command": "ls -la"}}', None),
    Shape("none react final", "Thought: I know this already.\nFinal Answer: 42", None),
    Shape("none sql", "```sql\nSELECT name FROM users WHERE age > 30;\n```", None),
    Shape("none sql raw", "SELECT COUNT(*) FROM orders;", None),
    Shape("none shell", "```bash\npip install numpy\npython main.py\n```", None),
    Shape("none shell raw", "cd project && npm install && npm start", None),
    Shape("none shell dollar", "Run this:\n\n```\n$ git status\n$ git pull\n```\n", None),
    Shape("none javascript", "```javascript\nconst x = 6;\nconsole.log(x * 7);\n```", None),
    Shape("none javascript raw", "const x = 6;\nfunction f(n) { return n * 7; }\nconsole.log(f(x));", None),
    Shape("none typescript", "```ts\nlet x: number = 42\n```", None),
    Shape("none c", '```c\n#include <stdio.h>\nint main(void) { printf("%d", 42); return 0; }\n```', None),
    Shape(
        "none java",
        "```java\nclass A { public static void main(String[] a) { System.out.println(42); } }\n```",
        None,
    ),
    Shape("none lua", "```lua\nprint(6 * 7)\n```", None),
    Shape("none r", "```r\nx <- c(6, 7)\nprint(prod(x))\n```", None),
    Shape("none julia", "```julia\nprint(6 * 7)\n```", None),
    Shape("none rust", '```rust\nfn main() { println!("{}", 42); }\n```', None),
    Shape("none html", "<!DOCTYPE html>\n<html>\n<body>\n<h1>42</h1>\n</body>\n</html>", None),
    Shape("none css", "```css\nbody { color: red; }\n```", None),
    Shape("none yaml", "```yaml\nname: demo\nversion: 1\n```", None),
    Shape("none toml", '```toml\n[project]\nname = "demo"\nversion = "1.0"\n```', None),
    Shape("none csv", "name,age\nAda,36\nCharles,45\n", None),
    Shape("none dockerfile", "```dockerfile\nFROM python:3.12\nRUN pip install flask\n```", None),
    Shape("none latex", "\\[ \\int_0^1 x^2 \\, dx = \\frac{1}{3} \\]", None),
    Shape("none output fence", "The program would print:\n\n```text\n42\n```\n", None),
    Shape(
        "none traceback",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1',
        None,
    ),
    Shape("none table", "| a | b |\n|---|---|\n| 1 | 2 |\n", None),
    Shape(
        "none think only",
        "<think>\nThe user wants a program. I should use print, but first I need to consider whether",
        None,
    ),
    Shape(
        "none draft only in thought",
        "<think>\n```python\nprint(41)\n```\nNo, no code is needed.\n</think>\n\nThe answer is 42.",
        None,
    ),
    Shape("none end token only", "<|im_end|>", None),
    Shape("none empty code value", '{"name": "python", "arguments": {"code": ""}}', None),
    Shape("none empty tag", "<execute_python>\n</execute_python>", None),
    Shape("none mermaid", "```mermaid\ngraph LR\n  A --> B\n```", None),
    Shape(
        "none poem", "Roses are red,\nviolets are blue;\nwhile True remains true,\nreturn to me, do.", None
    ),
)

GROUPS: dict[str, tuple[Shape, ...]] = {
    "fences": FENCES,
    "multi": MULTI,
    "tags": TAGS,
    "tools": TOOLS,
    "raw": RAW,
    "none": NONE,
}

SHAPES: tuple[Shape, ...] = FENCES + MULTI + TAGS + TOOLS + RAW + NONE

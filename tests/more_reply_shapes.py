"""Further replies of language models, written after `reply_shapes` and before any of them had been tried.

The extraction as it had been made for the others found 164 of these 172 right; what it missed was mended afterwards.
"""

from __future__ import annotations

from .reply_shapes import Shape

SHAPES: tuple[Shape, ...] = (
    # ---------------------------------------------------------------- ordinary replies in English
    Shape(
        "en_sieve_with_headings",
        r'''Sure! Here's a Python program that finds all prime numbers up to a given limit using the
**Sieve of Eratosthenes**:

```python
def sieve_of_eratosthenes(limit):
    """Return a list of all primes <= limit."""
    is_prime = [True] * (limit + 1)
    is_prime[0:2] = [False, False]
    for number in range(2, int(limit ** 0.5) + 1):
        if is_prime[number]:
            for multiple in range(number * number, limit + 1, number):
                is_prime[multiple] = False
    return [n for n, prime in enumerate(is_prime) if prime]


if __name__ == "__main__":
    primes = sieve_of_eratosthenes(30)
    print("Primes up to 30:", primes)
    print("Count:", len(primes))
```

### How it works

1. **Initialization** – We start by assuming that every number is prime.
2. **Elimination** – For each prime `p`, all multiples starting at `p * p` are marked as composite.
3. **Collection** – Whatever is still `True` at the end is prime.

### Complexity

- **Time:** `O(n log log n)`
- **Space:** `O(n)`

Let me know if you'd like a segmented version for very large limits! 😊
''',
        "Primes up to 30: [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]\nCount: 10",
    ),
    Shape(
        "en_bank_account_sample_output",
        r'''Here's a simple `BankAccount` class with error handling:

```python
class InsufficientFundsError(Exception):
    """Raised when a withdrawal exceeds the balance."""


class BankAccount:
    def __init__(self, owner: str, balance: float = 0.0) -> None:
        self.owner = owner
        self.balance = balance

    def deposit(self, amount: float) -> None:
        if amount <= 0:
            raise ValueError("Deposit must be positive")
        self.balance += amount

    def withdraw(self, amount: float) -> None:
        if amount > self.balance:
            raise InsufficientFundsError(
                f"Cannot withdraw {amount:.2f}, balance is {self.balance:.2f}"
            )
        self.balance -= amount

    def __str__(self) -> str:
        return f"Account({self.owner}): {self.balance:.2f}"


account = BankAccount("Maria", 100.0)
account.deposit(50)
account.withdraw(30)
try:
    account.withdraw(500)
except InsufficientFundsError as error:
    print(f"Error: {error}")
print(account)
```

**Output:**

```
Error: Cannot withdraw 500.00, balance is 120.00
Account(Maria): 120.00
```

**Key points:**

- A custom exception makes the failure easy to catch.
- `__str__` controls how the account is printed.
- Validation happens *before* the state is changed.
''',
        "Error: Cannot withdraw 500.00, balance is 120.00\nAccount(Maria): 120.00",
    ),
    Shape(
        "en_word_frequency_counter",
        r"""To count how often each word occurs, `collections.Counter` is the most convenient tool:

```python
import re
from collections import Counter

text = "The quick brown fox jumps over the lazy dog. The fox is quick!"

words = re.findall(r"[a-z']+", text.lower())
counts = Counter(words)

for word, count in counts.most_common(3):
    print(f"{word:<6}{count}")
```

When you run this, you'll see:

```text
the   3
quick 2
fox   2
```

`re.findall` strips the punctuation, and `most_common(3)` returns the three most frequent words (ties keep
the order in which the words were first seen).
""",
        "the   3\nquick 2\nfox   2",
    ),
    Shape(
        "en_binary_search_then_usage",
        r'''# Binary Search in Python

Binary search repeatedly halves the search interval, so it only works on **sorted** lists.

## Implementation

```python
def binary_search(items, target):
    """Return the index of target in items, or -1 if it is absent."""
    low, high = 0, len(items) - 1
    while low <= high:
        mid = (low + high) // 2
        if items[mid] == target:
            return mid
        if items[mid] < target:
            low = mid + 1
        else:
            high = mid - 1
    return -1
```

## Example usage

```python
numbers = [2, 5, 8, 12, 16, 23, 38, 56, 72, 91]
print(binary_search(numbers, 23))
print(binary_search(numbers, 4))
```

## Output

```
5
-1
```

## Complexity

| Case    | Time       |
|---------|------------|
| Best    | `O(1)`     |
| Average | `O(log n)` |
| Worst   | `O(log n)` |
''',
        "5\n-1",
    ),
    Shape(
        "en_fix_users_bug",
        r"""The problem is in the division. You wrote:

```python
def average(values):
    return sum(values) // len(values)

print(average([1, 2, 4, 4]))
```

The `//` operator performs *floor* division, so the fractional part is thrown away and you get `2`
instead of `2.75`. Use `/` instead. Here is the corrected program:

```python
def average(values):
    if not values:
        raise ValueError("average() of an empty list")
    return sum(values) / len(values)

print(average([1, 2, 4, 4]))
```

I also added a check for the empty list, which would otherwise raise a `ZeroDivisionError`.
""",
        "2.75",
    ),
    Shape(
        "en_three_steps_belong_together",
        r"""Let's build this up step by step.

### Step 1: Set up the data

```python
from collections import defaultdict

sales = [
    ("north", 120),
    ("south", 200),
    ("north", 180),
    ("south", 50),
    ("west", 75),
]
```

### Step 2: Group by region

```python
def total_by_region(records):
    totals = defaultdict(int)
    for region, amount in records:
        totals[region] += amount
    return dict(totals)
```

### Step 3: Print the report

```python
for region, total in sorted(total_by_region(sales).items()):
    print(f"{region}: {total}")
```

This prints one line per region in alphabetical order. Feel free to replace `sales` with your own data!
""",
        "north: 300\nsouth: 250\nwest: 75",
    ),
    Shape(
        "en_pieces_then_putting_it_all_together",
        r"""A vending machine needs two things: a price list and a way to give change.

First, let's look at how change is computed. The greedy approach takes the largest coin first:

```python
coins = [50, 20, 10, 5]
amount = 85
for coin in coins:
    print(coin, amount // coin)
    amount %= coin
```

Next, the price list is just a dictionary:

```python
PRICES = {"water": 65, "juice": 120, "crisps": 90}
```

## Putting it all together

Here is the complete program:

```python
PRICES = {"water": 65, "juice": 120, "crisps": 90}
COINS = [50, 20, 10, 5]


def make_change(amount):
    change = {}
    for coin in COINS:
        count, amount = divmod(amount, coin)
        if count:
            change[coin] = count
    return change


def buy(item, paid):
    price = PRICES[item]
    if paid < price:
        return f"{item}: {price - paid} missing"
    return f"{item}: change {make_change(paid - price)}"


print(buy("water", 150))
print(buy("juice", 100))
```

That's the whole machine!
""",
        "water: change {50: 1, 20: 1, 10: 1, 5: 1}\njuice: 20 missing",
    ),
    Shape(
        "en_lru_cache_class",
        r'''Below is an LRU (Least Recently Used) cache with `O(1)` get and put, built on `OrderedDict`.

```python
from collections import OrderedDict


class LRUCache:
    """A cache that evicts the least recently used entry."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self._data: OrderedDict[int, str] = OrderedDict()

    def get(self, key: int):
        if key not in self._data:
            return None
        self._data.move_to_end(key)
        return self._data[key]

    def put(self, key: int, value: str) -> None:
        self._data[key] = value
        self._data.move_to_end(key)
        if len(self._data) > self.capacity:
            evicted, _ = self._data.popitem(last=False)
            print(f"evicted {evicted}")


cache = LRUCache(2)
cache.put(1, "one")
cache.put(2, "two")
cache.get(1)            # 1 is now the most recently used key
cache.put(3, "three")   # evicts 2
print(cache.get(2), cache.get(1), cache.get(3))
```

**Why `OrderedDict`?**

* `move_to_end` marks an entry as recently used.
* `popitem(last=False)` removes the oldest entry.

Both operations run in constant time.
''',
        "evicted 2\nNone one three",
    ),
    Shape(
        "en_dijkstra_heap",
        r"""Dijkstra's algorithm finds the shortest path from a source to every other node, as long as all
edge
weights are non-negative.

```python
import heapq


def dijkstra(graph, source):
    distances = {node: float("inf") for node in graph}
    distances[source] = 0
    queue = [(0, source)]
    while queue:
        distance, node = heapq.heappop(queue)
        if distance > distances[node]:
            continue  # stale entry
        for neighbour, weight in graph[node].items():
            candidate = distance + weight
            if candidate < distances[neighbour]:
                distances[neighbour] = candidate
                heapq.heappush(queue, (candidate, neighbour))
    return distances


graph = {
    "A": {"B": 4, "C": 1},
    "B": {"D": 1},
    "C": {"B": 2, "D": 7},
    "D": {},
}

for node, distance in dijkstra(graph, "A").items():
    print(f"A -> {node}: {distance}")
```

Explanation of the important lines:

1. `distances` starts with infinity everywhere except at the source.
2. The heap always yields the closest unvisited node.
3. Stale heap entries are skipped with `continue`.

The overall running time is $O((V + E) \log V)$.
""",
        "A -> A: 0\nA -> B: 3\nA -> C: 1\nA -> D: 4",
    ),
    Shape(
        "en_asyncio_gather",
        r"""Absolutely! With `asyncio.gather` you can run several coroutines concurrently and still get the
results
in the order in which you passed them:

```python
import asyncio


async def fetch(name: str, delay: float) -> str:
    await asyncio.sleep(delay)
    return f"{name} done"


async def main() -> None:
    results = await asyncio.gather(
        fetch("users", 0.02),
        fetch("orders", 0.01),
        fetch("stock", 0.0),
    )
    for result in results:
        print(result)


asyncio.run(main())
```

Note that `orders` finishes *before* `users`, but `gather` keeps the original order. If you want results as
soon as they are ready, use `asyncio.as_completed` instead.
""",
        "users done\norders done\nstock done",
    ),
    Shape(
        "en_decorator_count_calls",
        r'''A decorator is a function that takes another function and returns a replacement for it. Here's a
decorator that counts how often a function has been called:

```python
import functools


def count_calls(func):
    """Count the calls of the decorated function."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return func(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@count_calls
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(f"fib(10) = {fib(10)}")
print(f"{fib.__name__} was called {fib.calls} times")
```

> **Tip:** Always use `functools.wraps`, otherwise `fib.__name__` would be `"wrapper"`.

Adding `@functools.lru_cache(maxsize=None)` below `@count_calls` would not change the number of outer
calls much, but it would make the function dramatically faster.
''',
        "fib(10) = 55\nfib was called 177 times",
    ),
    Shape(
        "en_csv_in_memory",
        r"""Since you can't attach the file here, I'll simulate it with `io.StringIO`. Just swap that line for
`open("students.csv", newline="")` when you run it on your machine.

```python
import csv
import io

raw = '''name,subject,score
Ann,Math,90
Ben,Math,75
Ann,Physics,80
Ben,Physics,85
'''

scores = {}
with io.StringIO(raw) as handle:
    for row in csv.DictReader(handle):
        scores.setdefault(row["name"], []).append(int(row["score"]))

for name, values in scores.items():
    print(f"{name}: mean={sum(values) / len(values):.1f}, best={max(values)}")
```

Expected result:

    Ann: mean=85.0, best=90
    Ben: mean=80.0, best=85

Anything else you'd like to compute from this file?
""",
        "Ann: mean=85.0, best=90\nBen: mean=80.0, best=85",
    ),
    Shape(
        "en_json_config_and_program",
        r"""You can merge the user's settings over the defaults recursively. Suppose your `config.json` looks
like
this:

```json
{
  "debug": true,
  "server": {"port": 9000}
}
```

Then the following program produces the merged configuration (I embedded the JSON so it runs as is):

```python
import json

DEFAULTS = {"debug": False, "server": {"host": "localhost", "port": 8080}}
USER = '{"debug": true, "server": {"port": 9000}}'


def merge(base, override):
    result = dict(base)
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


print(json.dumps(merge(DEFAULTS, json.loads(USER)), sort_keys=True))
```

The important detail is the recursive call: a plain `DEFAULTS | user` would drop `"host"`.
""",
        '{"debug": true, "server": {"host": "localhost", "port": 9000}}',
    ),
    Shape(
        "en_regex_log_parser",
        r'''Here's a small log analyser. It uses a compiled regular expression with named groups.

```python
import re
from collections import Counter

LOG = """\
2024-03-01 10:00:01 INFO  service started
2024-03-01 10:00:05 ERROR database timeout
2024-03-01 10:01:17 WARN  slow query (1.2 s)
2024-03-01 10:02:40 ERROR disk full
not a log line
"""

PATTERN = re.compile(r"^(?P<date>\S+) (?P<time>\S+) (?P<level>[A-Z]+)\s+(?P<message>.+)$")

levels = Counter()
errors = []
for line in LOG.splitlines():
    match = PATTERN.match(line)
    if not match:
        print(f"skipped: {line!r}")
        continue
    levels[match["level"]] += 1
    if match["level"] == "ERROR":
        errors.append(match["message"])

print(dict(levels))
print("; ".join(errors))
```

**What each group does**

- `(?P<date>\S+)` – everything up to the first blank
- `(?P<level>[A-Z]+)` – the upper-case level
- `(?P<message>.+)` – the rest of the line
''',
        "skipped: 'not a log line'\n{'INFO': 1, 'ERROR': 2, 'WARN': 1}\ndatabase timeout; disk full",
    ),
    Shape(
        "en_n_queens_backtracking",
        r"""Great question! The N-Queens problem can be solved with **backtracking**: place one queen per row
and
undo the placement whenever it leads to a dead end.

```python
def solve(n):
    columns, diagonals, anti_diagonals = set(), set(), set()
    solutions = []

    def place(row, board):
        if row == n:
            solutions.append(board)
            return
        for col in range(n):
            if col in columns or row - col in diagonals or row + col in anti_diagonals:
                continue
            columns.add(col)
            diagonals.add(row - col)
            anti_diagonals.add(row + col)
            place(row + 1, board + [col])
            columns.remove(col)
            diagonals.remove(row - col)
            anti_diagonals.remove(row + col)

    place(0, [])
    return solutions


for n in (4, 5, 6):
    print(f"{n} queens: {len(solve(n))} solutions")

for col in solve(4)[0]:
    print("." * col + "Q" + "." * (3 - col))
```

The three sets make the conflict check `O(1)`, which is much faster than scanning the board.
""",
        "4 queens: 2 solutions\n5 queens: 10 solutions\n6 queens: 4 solutions\n.Q..\n...Q\nQ...\n..Q.",
    ),
    Shape(
        "en_enum_state_machine",
        r"""A turnstile is the "hello world" of state machines. Using `enum.Enum` keeps the states readable:

```python
from enum import Enum, auto


class State(Enum):
    LOCKED = auto()
    UNLOCKED = auto()


TRANSITIONS = {
    (State.LOCKED, "coin"): State.UNLOCKED,
    (State.LOCKED, "push"): State.LOCKED,
    (State.UNLOCKED, "coin"): State.UNLOCKED,
    (State.UNLOCKED, "push"): State.LOCKED,
}

state = State.LOCKED
for event in ["push", "coin", "coin", "push"]:
    new_state = TRANSITIONS[state, event]
    print(f"{event}: {state.name} -> {new_state.name}")
    state = new_state
```

| State      | `coin`     | `push`   |
|------------|------------|----------|
| `LOCKED`   | `UNLOCKED` | `LOCKED` |
| `UNLOCKED` | `UNLOCKED` | `LOCKED` |

Adding a new state only requires new entries in the table. 🎉
""",
        "push: LOCKED -> LOCKED\ncoin: LOCKED -> UNLOCKED\ncoin: UNLOCKED -> UNLOCKED\n"
        "push: UNLOCKED -> LOCKED",
    ),
    Shape(
        "en_roman_with_asserts",
        r'''Here is a function that converts integers to Roman numerals, together with a few tests:

```python
def to_roman(number: int) -> str:
    """Convert 1..3999 to a Roman numeral."""
    if not 0 < number < 4000:
        raise ValueError("number out of range")
    table = [
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"),
        (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
        (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ]
    result = []
    for value, symbol in table:
        count, number = divmod(number, value)
        result.append(symbol * count)
    return "".join(result)
```

And here are the test cases:

```python
assert to_roman(1) == "I"
assert to_roman(4) == "IV"
assert to_roman(1994) == "MCMXCIV"
try:
    to_roman(0)
except ValueError as exc:
    print("rejected:", exc)
print("All tests passed!")
```

The table includes the subtractive forms (`CM`, `XC`, …), so no special handling is necessary.
''',
        "rejected: number out of range\nAll tests passed!",
    ),
    Shape(
        "en_caesar_with_run_instructions",
        r'''### Caesar cipher

Save the following code as `caesar.py`:

```python
#!/usr/bin/env python3
"""Encrypt and decrypt text with the Caesar cipher."""

import string


def shift(text: str, key: int) -> str:
    lower, upper = string.ascii_lowercase, string.ascii_uppercase
    key %= 26
    table = str.maketrans(
        lower + upper,
        lower[key:] + lower[:key] + upper[key:] + upper[:key],
    )
    return text.translate(table)


def main() -> None:
    secret = shift("Attack at Dawn!", 3)
    print(secret)
    print(shift(secret, -3))


if __name__ == "__main__":
    main()
```

Then run it from a terminal:

```bash
chmod +x caesar.py
python3 caesar.py
```

You should see:

```
Dwwdfn dw Gdzq!
Attack at Dawn!
```
''',
        "Dwwdfn dw Gdzq!\nAttack at Dawn!",
    ),
    Shape(
        "en_binary_tree_traversals",
        r"""Here's how you can implement a binary search tree and its three depth-first traversals:

```python
class Tree:
    def __init__(self, value):
        self.value = value
        self.left = self.right = None

    def insert(self, value):
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        if child is None:
            setattr(self, side, Tree(value))
        else:
            child.insert(value)


def inorder(node):
    return inorder(node.left) + [node.value] + inorder(node.right) if node else []


def preorder(node):
    return [node.value] + preorder(node.left) + preorder(node.right) if node else []


def postorder(node):
    return postorder(node.left) + postorder(node.right) + [node.value] if node else []


root = Tree(50)
for value in (30, 70, 20, 40, 60):
    root.insert(value)

print("in:  ", inorder(root))
print("pre: ", preorder(root))
print("post:", postorder(root))
```

The resulting tree:

```
      50
     /  \
   30    70
  /  \   /
 20  40 60
```
""",
        "in:   [20, 30, 40, 50, 60, 70]\npre:  [50, 30, 20, 40, 70, 60]\npost: [20, 40, 30, 60, 70, 50]",
    ),
    Shape(
        "en_matrix_no_numpy_math",
        r"""Given two matrices $A \in \mathbb{R}^{m \times n}$ and $B \in \mathbb{R}^{n \times p}$, their
product is

$$
(AB)_{ij} = \sum_{k=1}^{n} A_{ik} B_{kj}
$$

In plain Python (without NumPy), this becomes:

```python
def matmul(a, b):
    if len(a[0]) != len(b):
        raise ValueError("shapes do not match")
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]

A = [[1, 2], [3, 4], [5, 6]]
B = [[7, 8, 9], [10, 11, 12]]

for row in matmul(A, B):
    print(row)
```

**Explanation:** `zip(*b)` iterates over the columns of `b`. For each row of `a` and each column of `b`, we
compute the dot product.
""",
        "[27, 30, 33]\n[61, 68, 75]\n[95, 106, 117]",
    ),
    Shape(
        "en_generator_pipeline",
        r"""Generators let you process data lazily. In the pipeline below nothing is computed until `islice`
asks for
a value:

```python
from itertools import count, islice


def squares(numbers):
    for number in numbers:
        yield number * number


def only(predicate, numbers):
    for number in numbers:
        if predicate(number):
            yield number


pipeline = only(lambda n: n % 3 == 1, squares(count(1)))
print(list(islice(pipeline, 6)))
print(next(pipeline))
```

A few things to note:

- `count(1)` is **infinite**, so never call `list(count(1))`!
- A generator keeps its position: `next(pipeline)` continues where `islice` stopped.
- No intermediate list is built, therefore memory usage is constant.
""",
        "[1, 4, 16, 25, 49, 64]\n100",
    ),
    Shape(
        "en_context_manager",
        r'''There are two ways of writing a context manager: a class with `__enter__`/`__exit__`, or a
generator with
`@contextmanager`. This program demonstrates both, nested:

```python
from contextlib import contextmanager


class Section:
    def __init__(self, title):
        self.title = title

    def __enter__(self):
        print(f"<{self.title}>")
        return self

    def __exit__(self, exc_type, exc, tb):
        print(f"</{self.title}>")
        return exc_type is ZeroDivisionError   # swallow this one


@contextmanager
def indented(prefix):
    """Yield a print function that indents."""
    def write(text):
        print(prefix + text)
    yield write


with Section("report"):
    with indented("  ") as write:
        write("start")
        1 / 0
        write("never printed")
print("still running")
```

Because `__exit__` returns a true value for `ZeroDivisionError`, the exception is suppressed and the program
continues after the `with` block.
''',
        "<report>\n  start\n</report>\nstill running",
    ),
    Shape(
        "en_knapsack_table",
        r"""**Problem.** Choose items so that the total weight does not exceed the capacity and the total
value is as
large as possible.

**Approach.** Dynamic programming: `best[c]` is the best value for capacity `c`.

```python
items = [("ring", 1, 1), ("laptop", 3, 4), ("guitar", 4, 5), ("painting", 5, 7)]
capacity = 7

best = [(0, [])] * (capacity + 1)
for name, weight, value in items:
    for c in range(capacity, weight - 1, -1):
        candidate = best[c - weight][0] + value
        if candidate > best[c][0]:
            best[c] = (candidate, best[c - weight][1] + [name])

value, chosen = best[capacity]
print(f"value {value}: {', '.join(chosen)}")
```

**Result.** The laptop (weight 3) and the guitar (weight 4) fill the knapsack exactly, with value 4 + 5 = 9.

**Complexity.** `O(n · W)` time for `n` items and capacity `W`.
""",
        "value 9: laptop, guitar",
    ),
    Shape(
        "en_game_of_life_output_fence",
        r"""Sure thing! Here's Conway's Game of Life with a *blinker*:

```python
from itertools import product


def step(alive):
    counts = {}
    for x, y in alive:
        for dx, dy in product((-1, 0, 1), repeat=2):
            if dx or dy:
                cell = (x + dx, y + dy)
                counts[cell] = counts.get(cell, 0) + 1
    return {c for c, n in counts.items() if n == 3 or (n == 2 and c in alive)}


def show(alive, size=3):
    for y in range(size):
        print("".join("#" if (x, y) in alive else "." for x in range(size)))
    print()


blinker = {(0, 1), (1, 1), (2, 1)}
show(blinker)
show(step(blinker))
```

Output:
```
...
###
...

.#.
.#.
.#.
```

The set representation means that the board is unbounded: only the living cells are stored.
""",
        "...\n###\n...\n\n.#.\n.#.\n.#.",
    ),
    Shape(
        "en_dataclass_inventory",
        r"""## Inventory management with `dataclasses`

```python
from dataclasses import dataclass, field


@dataclass(order=True)
class Product:
    sort_key: tuple = field(init=False, repr=False)
    name: str
    price: float
    quantity: int = 0

    def __post_init__(self):
        self.sort_key = (-self.total, self.name)

    @property
    def total(self) -> float:
        return self.price * self.quantity


stock = [
    Product("bolt", 0.10, 500),
    Product("hammer", 15.0, 4),
    Product("saw", 12.5, 4),
]

for product in sorted(stock):
    print(f"{product.name:>8} {product.total:7.2f}")
print(stock[0])
```

### Notes

- `order=True` compares the fields in the order of definition, hence the `sort_key` at the top.
- `field(init=False, repr=False)` hides the key from the constructor and from the printed form.
- Sorting by a *negated* total gives a descending order.
""",
        "hammer   60.00\n    bolt   50.00\n     saw   50.00\nProduct(name='bolt', price=0.1, quantity=500)",
    ),
    Shape(
        "en_self_correction_midway",
        r"""Here's a function that flattens a nested list:

```python
def flatten(items):
    result = []
    for item in items:
        if isinstance(item, list):
            result.append(flatten(item))
        else:
            result.append(item)
    return result

print(flatten([1, [2, [3, 4]], 5]))
```

Wait, that's not right: `append` would add the flattened sub-list as a single element, so the output would
still be nested. I should use `extend` there. Let me correct that:

```python
def flatten(items):
    result = []
    for item in items:
        if isinstance(item, list):
            result.extend(flatten(item))
        else:
            result.append(item)
    return result

print(flatten([1, [2, [3, 4]], 5]))
```

Now it works as intended. Sorry for the confusion!
""",
        "[1, 2, 3, 4, 5]",
    ),
    Shape(
        "en_pseudocode_then_python",
        r"""Let's start with the idea in pseudocode:

```
function gcd(a, b):
    while b is not 0:
        (a, b) <- (b, a mod b)
    return a
```

Translated to Python:

```python
def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


for pair in [(48, 36), (17, 5), (0, 9)]:
    print(pair, gcd(*pair))
```

The loop terminates because `b` gets strictly smaller in every iteration.
""",
        "(48, 36) 12\n(17, 5) 1\n(0, 9) 9",
    ),
    Shape(
        "en_javascript_and_python_versions",
        r"""Here is the function in both languages you asked for.

**JavaScript**

```javascript
const slugify = (text) =>
  text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

console.log(slugify("Hello, World! 2 times"));
```

**Python**

```python
import re

def slugify(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

print(slugify("Hello, World! 2 times"))
```

The two behave identically for ASCII input. For accented characters you would have to normalise first.
""",
        "hello-world-2-times",
    ),
    Shape(
        "en_directory_tree_and_file",
        r"""I'd suggest this layout:

```
wordle/
├── README.md
└── score.py
```

**`score.py`**

```python
from collections import Counter


def score(guess: str, answer: str) -> str:
    result = ["-"] * len(guess)
    remaining = Counter()
    for i, (g, a) in enumerate(zip(guess, answer)):
        if g == a:
            result[i] = "G"
        else:
            remaining[a] += 1
    for i, g in enumerate(guess):
        if result[i] == "-" and remaining[g] > 0:
            result[i] = "Y"
            remaining[g] -= 1
    return "".join(result)


print(score("crane", "caner"))
print(score("allee", "apple"))
```

`README.md` can stay empty for now. The two passes are necessary so that a letter isn't marked yellow more
often than it occurs in the answer.
""",
        "GYYYY\nGY--G",
    ),
    Shape(
        "en_exceptions_try_else_finally",
        r"""Certainly! The full form of the `try` statement has four parts:

```python
def parse(text):
    try:
        number = int(text)
    except ValueError:
        print(f"{text!r} is not a number")
        return None
    else:
        print(f"{text!r} -> {number}")
        return number
    finally:
        print("checked")


total = sum(n for n in map(parse, ["7", "x", "35"]) if n is not None)
print("Total:", total)
```

- `except` handles the error,
- `else` runs only if no error occurred,
- `finally` runs **always**, even after a `return`.

I hope this helps! Let me know if you have further questions.
""",
        "'7' -> 7\nchecked\n'x' is not a number\nchecked\n'35' -> 35\nchecked\nTotal: 42",
    ),
    Shape(
        "en_install_then_program",
        r"""### Prerequisites

You don't need any third-party package, but I recommend a virtual environment:

```bash
python -m venv .venv
source .venv/bin/activate
pip install --upgrade pip
```

### Code

```python
import statistics
from fractions import Fraction

samples = [Fraction(1, 2), Fraction(3, 4), Fraction(5, 8)]

print("mean:", statistics.mean(samples))
print("median:", statistics.median(samples))
print("sum:", sum(samples, Fraction()))
```

### Run

```bash
python stats.py
```
""",
        "mean: 5/8\nmedian: 5/8\nsum: 15/8",
    ),
    Shape(
        "en_no_markdown_answer_simple",
        r"""Here is a Python program that checks whether two strings are anagrams of each other.

def is_anagram(first, second):
    normalize = lambda s: sorted(s.replace(" ", "").lower())
    return normalize(first) == normalize(second)

print(is_anagram("Dormitory", "dirty room"))
print(is_anagram("Hello", "World"))

The function removes the spaces, converts both strings to lower case and compares the sorted letters. If they
are equal, the strings are anagrams.
""",
        "True\nFalse",
    ),
    # ---------------------------------------------------------------- ordinary replies, other languages
    Shape(
        "de_fibonacci_erklaerung",
        r'''Gerne! Hier ist ein Programm, das die ersten `n` Fibonacci-Zahlen berechnet:

```python
def fibonacci(anzahl):
    """Gibt die ersten `anzahl` Fibonacci-Zahlen als Liste zurück."""
    zahlen = []
    a, b = 0, 1
    for _ in range(anzahl):
        zahlen.append(a)
        a, b = b, a + b
    return zahlen


# Hauptprogramm
folge = fibonacci(10)
print("Folge:", ", ".join(map(str, folge)))
print("Größte Zahl:", max(folge))
```

### Erklärung

1. Die Variablen `a` und `b` enthalten jeweils zwei aufeinanderfolgende Zahlen.
2. In jedem Schleifendurchlauf wird `a` an die Liste angehängt.
3. Durch die gleichzeitige Zuweisung `a, b = b, a + b` braucht man keine Hilfsvariable.

**Ausgabe:**

```
Folge: 0, 1, 1, 2, 3, 5, 8, 13, 21, 34
Größte Zahl: 34
```

Möchtest du auch eine rekursive Variante sehen?
''',
        "Folge: 0, 1, 1, 2, 3, 5, 8, 13, 21, 34\nGrößte Zahl: 34",
    ),
    Shape(
        "de_kontoauszug_schritte",
        r"""Natürlich, das lässt sich gut in zwei Schritten lösen.

**Schritt 1: Die Buchungen einlesen**

```python
auszug = '''
2024-01-03;Gehalt;2500,00
2024-01-05;Miete;-980,50
2024-01-09;Supermarkt;-73,20
'''

buchungen = []
for zeile in auszug.strip().split("\n"):
    datum, text, betrag = zeile.split(";")
    buchungen.append((datum, text, float(betrag.replace(",", "."))))
```

**Schritt 2: Auswerten**

```python
einnahmen = sum(b for _, _, b in buchungen if b > 0)
ausgaben = -sum(b for _, _, b in buchungen if b < 0)

print(f"Einnahmen: {einnahmen:.2f} €")
print(f"Ausgaben:  {ausgaben:.2f} €")
print(f"Saldo:     {einnahmen - ausgaben:.2f} €")
```

Wichtig ist das Ersetzen des Dezimalkommas, weil `float("2500,00")` sonst einen `ValueError` auslöst.
Bei echten Geldbeträgen würde ich allerdings `decimal.Decimal` empfehlen.
""",
        "Einnahmen: 2500.00 €\nAusgaben:  1053.70 €\nSaldo:     1446.30 €",
    ),
    Shape(
        "es_palindromo_con_explicacion",
        r'''¡Claro! Aquí tienes un programa en Python que comprueba si una frase es un palíndromo:

```python
import unicodedata


def normalizar(frase):
    """Quita los acentos, los espacios y los signos de puntuación."""
    descompuesta = unicodedata.normalize("NFD", frase.lower())
    return "".join(c for c in descompuesta if c.isalnum())


def es_palindromo(frase):
    limpia = normalizar(frase)
    return limpia == limpia[::-1]


for frase in ["Anita lava la tina", "¡Hola, mundo!", "Dábale arroz a la zorra el abad"]:
    respuesta = "sí" if es_palindromo(frase) else "no"
    print(f"{frase}: {respuesta}")
```

## ¿Cómo funciona?

- **`normalizar`** convierte el texto a minúsculas y elimina todo lo que no sea una letra o un número.
- **`limpia[::-1]`** invierte la cadena.
- El bucle `for` prueba tres frases distintas.

Si quieres, también puedo escribir una versión que lea las frases de un archivo. 😄
''',
        "Anita lava la tina: sí\n¡Hola, mundo!: no\nDábale arroz a la zorra el abad: sí",
    ),
    Shape(
        "es_agenda_clase_y_uso",
        r"""A continuación se muestra una agenda de contactos sencilla.

### Definición de la clase

```python
class Agenda:
    def __init__(self):
        self._contactos = {}

    def agregar(self, nombre, telefono):
        if nombre in self._contactos:
            raise KeyError(f"{nombre} ya existe")
        self._contactos[nombre] = telefono

    def buscar(self, texto):
        texto = texto.lower()
        return sorted(n for n in self._contactos if texto in n.lower())

    def __len__(self):
        return len(self._contactos)
```

### Ejemplo de uso

```python
agenda = Agenda()
agenda.agregar("María Núñez", "600 111 222")
agenda.agregar("Mario Gil", "600 333 444")
agenda.agregar("Lucía Paz", "600 555 666")

print(len(agenda), "contactos")
print(agenda.buscar("mar"))
```

### Salida esperada

```
3 contactos
['Mario Gil', 'María Núñez']
```
""",
        "3 contactos\n['Mario Gil', 'María Núñez']",
    ),
    Shape(
        "zh_bubble_sort",
        r'''当然可以！下面是用 Python 实现的冒泡排序：

```python
def bubble_sort(arr):
    """冒泡排序,返回排序后的新列表和交换次数"""
    arr = arr[:]          # 不修改原列表
    swaps = 0
    n = len(arr)
    for i in range(n - 1):
        swapped = False
        for j in range(n - 1 - i):
            if arr[j] > arr[j + 1]:
                arr[j], arr[j + 1] = arr[j + 1], arr[j]
                swaps += 1
                swapped = True
        if not swapped:   # 已经有序,提前结束
            break
    return arr, swaps


数据 = [5, 2, 9, 1]
结果, 次数 = bubble_sort(数据)
print("排序前：", 数据)
print("排序后：", 结果)
print(f"交换次数：{次数}")
```

**代码说明：**

1. 外层循环控制排序的轮数；
2. 内层循环比较相邻的两个元素，如果顺序错误就交换；
3. `swapped` 用来判断是否可以提前结束。

**时间复杂度：** 最坏情况 O(n²)，最好情况 O(n)。

希望对你有帮助！如果还有其他问题，欢迎继续提问。
''',
        "排序前： [5, 2, 9, 1]\n排序后： [1, 2, 5, 9]\n交换次数：4",
    ),
    Shape(
        "zh_student_scores_stepwise",
        r"""好的，我们来分析一下这个问题。

### 思路

1. 用字典保存每个学生的成绩
2. 计算平均分
3. 按平均分从高到低排序

### 完整代码

```python
students = {
    "张三": [88, 92, 79],
    "李四": [95, 85, 90],
    "王五": [60, 75, 72],
}

def grade(avg):
    if avg >= 90:
        return "优秀"
    elif avg >= 80:
        return "良好"
    return "及格"

averages = {name: sum(s) / len(s) for name, s in students.items()}
for rank, (name, avg) in enumerate(sorted(averages.items(), key=lambda x: -x[1]), 1):
    print(f"第{rank}名：{name} {avg:.2f} {grade(avg)}")
```

### 运行结果

```
第1名：李四 90.00 优秀
第2名：张三 86.33 良好
第3名：王五 69.00 及格
```

以上代码可以直接运行，不需要安装第三方库。
""",
        "第1名：李四 90.00 优秀\n第2名：张三 86.33 良好\n第3名：王五 69.00 及格",
    ),
    Shape(
        "hi_factorial_samjhaiye",
        r"""ज़रूर! नीचे एक Python प्रोग्राम दिया गया है जो किसी संख्या का फ़ैक्टोरियल निकालता है:

```python
def factorial(n):
    # नकारात्मक संख्या का फ़ैक्टोरियल नहीं होता
    if n < 0:
        raise ValueError("संख्या नकारात्मक नहीं हो सकती")
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


for number in [0, 5, 10]:
    print(f"{number} का फ़ैक्टोरियल = {factorial(number)}")

try:
    factorial(-1)
except ValueError as error:
    print("त्रुटि:", error)
```

**व्याख्या:**

- `factorial` फ़ंक्शन 2 से `n` तक की सभी संख्याओं का गुणा करता है।
- यदि `n` नकारात्मक है, तो `ValueError` उठाया जाता है।
- अंत में हम तीन अलग-अलग संख्याओं पर फ़ंक्शन को आज़माते हैं।

अगर आपको रिकर्सिव (recursive) संस्करण चाहिए, तो बताइए! 🙏
""",
        "0 का फ़ैक्टोरियल = 1\n5 का फ़ैक्टोरियल = 120\n10 का फ़ैक्टोरियल = 3628800\nत्रुटि: संख्या नकारात्मक नहीं हो सकती",
    ),
    Shape(
        "ar_average_grades",
        r"""بالتأكيد! إليك برنامج بلغة بايثون يحسب متوسط درجات الطلاب:

```python
# درجات الطلاب
grades = {"أحمد": 85, "فاطمة": 92, "يوسف": 78}

def average(values):
    values = list(values)
    return sum(values) / len(values)

mean = average(grades.values())
print(f"المتوسط: {mean}")

for name, grade in grades.items():
    if grade > mean:
        print(name, "أعلى من المتوسط")
```

**شرح الكود:**

1. نعرّف قاموسًا يحتوي على أسماء الطلاب ودرجاتهم.
2. تحسب الدالة `average` المتوسط الحسابي.
3. نطبع أسماء الطلاب الذين حصلوا على درجة أعلى من المتوسط.

إذا كان لديك أي سؤال آخر، فلا تتردد في طرحه.
""",
        "المتوسط: 85.0\nفاطمة أعلى من المتوسط",
    ),
    Shape(
        "fr_temperatures_conversion",
        r"""Bien sûr ! Voici un petit programme qui convertit des températures :

```python
def celsius_vers_fahrenheit(c):
    return c * 9 / 5 + 32


def fahrenheit_vers_celsius(f):
    return (f - 32) * 5 / 9


print("  °C |    °F")
print("-----+------")
for c in range(-10, 31, 20):
    print(f"{c:4d} | {celsius_vers_fahrenheit(c):5.1f}")

assert fahrenheit_vers_celsius(212) == 100
print("L'eau bout à", round(celsius_vers_fahrenheit(100)), "°F")
```

### Explications

- Les deux fonctions appliquent simplement la formule de conversion.
- `{c:4d}` affiche un entier sur quatre caractères, `{…:5.1f}` un nombre avec une décimale.
- L'instruction `assert` vérifie que la fonction réciproque est correcte.

N'hésite pas à me demander si quelque chose n'est pas clair !
""",
        "°C |    °F\n-----+------\n -10 |  14.0\n  10 |  50.0\n  30 |  86.0\nL'eau bout à 212 °F",
    ),
    Shape(
        "pt_estoque_dicionario",
        r"""Claro! Segue um exemplo de controle de estoque usando dicionários:

```python
estoque = {"caneta": 10, "caderno": 4, "borracha": 0}

def vender(produto, quantidade):
    disponivel = estoque.get(produto, 0)
    if quantidade > disponivel:
        print(f"Não há {produto} suficiente (disponível: {disponivel})")
        return False
    estoque[produto] = disponivel - quantidade
    print(f"Venda realizada: {quantidade}x {produto}")
    return True

vender("caneta", 3)
vender("borracha", 1)
vender("régua", 2)
print("Total em estoque:", sum(estoque.values()))
```

**Como funciona:**

1. `estoque.get(produto, 0)` devolve `0` quando o produto não existe.
2. Se a quantidade for maior que a disponível, a venda é recusada.
3. No final, o programa mostra o total de itens restantes.

Quer que eu acrescente uma função para repor o estoque?
""",
        "Venda realizada: 3x caneta\nNão há borracha suficiente (disponível: 0)\n"
        "Não há régua suficiente (disponível: 0)\nTotal em estoque: 11",
    ),
    Shape(
        "ja_stack_class",
        r'''もちろんです。以下はスタックを実装したPythonのコードです。

```python
class Stack:
    """後入れ先出し(LIFO)のデータ構造"""

    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    def pop(self):
        if not self._items:
            raise IndexError("スタックが空です")
        return self._items.pop()

    def __len__(self):
        return len(self._items)


stack = Stack()
for 文字 in "さくら":
    stack.push(文字)

逆順 = ""
while len(stack):
    逆順 += stack.pop()
print(逆順)

try:
    stack.pop()
except IndexError as e:
    print("エラー:", e)
```

### 解説

- `push` で要素を追加し、`pop` で最後に追加した要素を取り出します。
- 空のスタックから取り出そうとすると `IndexError` が発生します。

実行結果は次のようになります。

```
らくさ
エラー: スタックが空です
```
''',
        "らくさ\nエラー: スタックが空です",
    ),
    Shape(
        "ko_gcd_lcm",
        r"""네, 최대공약수와 최소공배수를 구하는 파이썬 코드입니다.

```python
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a

def lcm(a, b):
    return a * b // gcd(a, b)

x, y = 24, 36
print(f"최대공약수: {gcd(x, y)}")
print(f"최소공배수: {lcm(x, y)}")
```

**설명**

1. `gcd` 함수는 유클리드 호제법을 사용합니다.
2. 최소공배수는 두 수의 곱을 최대공약수로 나눈 값입니다.

도움이 되셨다면 좋겠습니다!
""",
        "최대공약수: 12\n최소공배수: 72",
    ),
    Shape(
        "ru_spiral_matrix",
        r"""Конечно! Вот функция, которая обходит матрицу по спирали:

```python
def spiral(matrix):
    result = []
    rows = [list(row) for row in matrix]   # копия, чтобы не портить исходную матрицу
    while rows:
        result += rows.pop(0)              # верхняя строка
        rows = [list(r) for r in zip(*rows)][::-1]   # поворот против часовой стрелки
    return result


матрица = [
    [1, 2, 3],
    [4, 5, 6],
    [7, 8, 9],
]
print("Спираль:", *spiral(матрица))
```

**Как это работает**

* Забираем верхнюю строку.
* Оставшуюся часть поворачиваем на 90° против часовой стрелки.
* Повторяем, пока строки не закончатся.

Результат: `1 2 3 6 9 8 7 4 5`. Сложность — O(n·m) по памяти.
""",
        "Спираль: 1 2 3 6 9 8 7 4 5",
    ),
    Shape(
        "it_tris_vincitore",
        r"""Ecco un programma che determina il vincitore di una partita a tris:

```python
LINEE = [
    (0, 1, 2), (3, 4, 5), (6, 7, 8),   # righe
    (0, 3, 6), (1, 4, 7), (2, 5, 8),   # colonne
    (0, 4, 8), (2, 4, 6),              # diagonali
]


def vincitore(griglia):
    for a, b, c in LINEE:
        if griglia[a] != " " and griglia[a] == griglia[b] == griglia[c]:
            return griglia[a]
    return None


partite = ["XXXOO    ", "XO OX  OX", "XOXXOOOXX"]
for partita in partite:
    esito = vincitore(partita)
    print(f"Ha vinto {esito}" if esito else "Pareggio o partita in corso")
```

Ogni griglia è una stringa di nove caratteri; gli spazi rappresentano le caselle vuote. La costante `LINEE`
contiene le otto combinazioni vincenti.
""",
        "Ha vinto X\nHa vinto X\nPareggio o partita in corso",
    ),
    Shape(
        "tr_asal_sayilar",
        r"""Tabii ki! Aşağıda bir sayının asal çarpanlarını bulan Python programı var:

```python
def asal_carpanlar(sayi):
    carpanlar = []
    bolen = 2
    while bolen * bolen <= sayi:
        while sayi % bolen == 0:
            carpanlar.append(bolen)
            sayi //= bolen
        bolen += 1
    if sayi > 1:
        carpanlar.append(sayi)
    return carpanlar

for sayi in (12, 97, 360):
    print(f"{sayi} = " + " x ".join(map(str, asal_carpanlar(sayi))))
```

**Açıklama:**
- `while` döngüsü, sayı bölenine tam bölündüğü sürece bölmeye devam eder.
- Geriye 1'den büyük bir sayı kalırsa o da asaldır.

Başka bir sorunuz varsa yardımcı olmaktan mutluluk duyarım!
""",
        "12 = 2 x 2 x 3\n97 = 97\n360 = 2 x 2 x 2 x 3 x 3 x 5",
    ),
    Shape(
        "pl_liczenie_samoglosek",
        r"""Oczywiście! Oto program, który liczy samogłoski w podanym tekście:

```python
SAMOGLOSKI = "aąeęioóuy"


def policz(tekst):
    wynik = {}
    for znak in tekst.lower():
        if znak in SAMOGLOSKI:
            wynik[znak] = wynik.get(znak, 0) + 1
    return wynik


tekst = "Zażółć gęślą jaźń"
for litera, ile in policz(tekst).items():
    print(litera, ile)
print("Razem:", sum(policz(tekst).values()))
```

Funkcja `policz` zwraca słownik, w którym kluczami są samogłoski, a wartościami liczba ich wystąpień.
Zwróć uwagę, że polskie znaki (`ą`, `ę`, `ó`) są traktowane jako osobne litery.
""",
        "a 2\nó 1\nę 1\ną 1\nRazem: 5",
    ),
    Shape(
        "vi_so_hoan_hao",
        r"""Dưới đây là chương trình Python tìm các số hoàn hảo nhỏ hơn 1000:

```python
def la_so_hoan_hao(n):
    tong = sum(i for i in range(1, n // 2 + 1) if n % i == 0)
    return n > 1 and tong == n

ket_qua = [n for n in range(2, 1000) if la_so_hoan_hao(n)]
print("Các số hoàn hảo:", ket_qua)
```

**Giải thích:** một số được gọi là *hoàn hảo* nếu nó bằng tổng các ước thực sự của nó, ví dụ
6 = 1 + 2 + 3.

Kết quả:

```
Các số hoàn hảo: [6, 28, 496]
```
""",
        "Các số hoàn hảo: [6, 28, 496]",
    ),
    Shape(
        "uk_lichylnyk_sliv",
        r"""Звісно! Ось приклад програми, яка групує слова за довжиною:

```python
from itertools import groupby

слова = ["кіт", "пес", "миша", "слон", "жирафа"]

слова.sort(key=len)
for довжина, група in groupby(слова, key=len):
    print(довжина, list(група))
```

Зверніть увагу: перед викликом `groupby` список потрібно **відсортувати** за тим самим ключем, інакше групи
можуть повторюватися.
""",
        "3 ['кіт', 'пес']\n4 ['миша', 'слон']\n6 ['жирафа']",
    ),
    Shape(
        "id_kasir_diskon",
        r"""Tentu! Berikut program kasir sederhana dengan diskon:

```python
keranjang = [
    {"nama": "Beras", "harga": 65000, "jumlah": 2},
    {"nama": "Gula", "harga": 14000, "jumlah": 3},
]


def hitung_total(barang):
    return sum(b["harga"] * b["jumlah"] for b in barang)


total = hitung_total(keranjang)
diskon = total * 10 // 100 if total > 150000 else 0

print(f"Total   : Rp{total:,}".replace(",", "."))
print(f"Diskon  : Rp{diskon:,}".replace(",", "."))
print(f"Dibayar : Rp{total - diskon:,}".replace(",", "."))
```

Penjelasan:

* `hitung_total` menjumlahkan harga semua barang.
* Diskon 10% hanya diberikan jika total belanja lebih dari Rp150.000.
* `{total:,}` memakai koma sebagai pemisah ribuan, lalu diganti dengan titik.

Semoga membantu!
""",
        "Total   : Rp172.000\nDiskon  : Rp17.200\nDibayar : Rp154.800",
    ),
    Shape(
        "sv_bare_median",
        r"""Här kommer ett program som räknar ut medianen av en lista med tal.

def median(tal):
    ordnade = sorted(tal)
    mitten = len(ordnade) // 2
    if len(ordnade) % 2:
        return ordnade[mitten]
    return (ordnade[mitten - 1] + ordnade[mitten]) / 2

print(median([7, 1, 3]))
print(median([4, 1, 3, 2]))

Om listan har ett jämnt antal element blir medianen medelvärdet av de två mittersta talen. Hör gärna av dig
om du undrar över något!
""",
        "3\n2.5",
    ),
    Shape(
        "he_rtl_shopping_list",
        r"""בטח! הנה תוכנית קצרה בפייתון שמדפיסה רשימת קניות ממוינת לפי מחיר:

```python
items = [("לחם", 8), ("חלב", 6), ("גבינה", 15)]

for name, price in sorted(items, key=lambda item: item[1]):
    print(name, price)

print("סך הכול:", sum(price for _, price in items))
```

הפונקציה `sorted` מקבלת את הפרמטר `key`, שקובע לפי מה ממיינים.
""",
        "חלב 6\nלחם 8\nגבינה 15\nסך הכול: 29",
    ),
    # ---------------------------------------------------------------- fences, right and wrong
    Shape(
        "fence_py_tag",
        r"""```py
numbers = [4, 8, 15, 16, 23, 42]
print(sum(numbers))
```""",
        "108",
    ),
    Shape(
        "fence_python3_tag_trailing_blanks",
        "Here you go:\n\n```python3  \nname = 'Grace'\nprint(name.upper())\n```  \n\nEnjoy!\n",
        "GRACE",
    ),
    Shape(
        "fence_capital_python_tag",
        r"""Solution:

```Python
def cube(x):
    return x ** 3

print([cube(n) for n in range(4)])
```

The list comprehension calls `cube` four times.""",
        "[0, 1, 8, 27]",
    ),
    Shape(
        "fence_blank_before_tag",
        r"""The code is as follows.

``` python
text = "stressed"
print(text[::-1])
```
""",
        "desserts",
    ),
    Shape(
        "fence_mkdocs_attributes",
        r"""```python title="leap.py" linenums="1" hl_lines="2"
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)

print([y for y in (1900, 2000, 2023, 2024) if is_leap(y)])
```

Line 2 contains the actual rule.
""",
        "[2000, 2024]",
    ),
    Shape(
        "fence_tildes",
        r"""Here is the script:

~~~python
vowels = sum(1 for c in "programming language" if c in "aeiou")
print(f"{vowels} vowels")
~~~

It counts 3 vowels in the first word and 4 in the second.
""",
        "7 vowels",
    ),
    Shape(
        "fence_four_backticks_inner_fence",
        r'''The script below writes a README. I use four backticks, since it contains a Markdown fence itself.

````python
readme = """# Demo

```bash
pip install demo
```

Enjoy.
"""

print(readme.count("`"))
print(readme.splitlines()[2])
````

That's it.
''',
        "6\n```bash",
    ),
    Shape(
        "fence_three_backticks_inner_fence_in_string",
        r'''Here's a function that wraps code in a Markdown fence:

```python
TEMPLATE = """
```{lang}
{code}
```
"""

def fence(code, lang="text"):
    return TEMPLATE.format(lang=lang, code=code).strip()

print(fence("SELECT 1", "sql"))
print(len(fence("x")))
```

You can pass any language as the second argument.
''',
        "```sql\nSELECT 1\n```\n13",
    ),
    Shape(
        "fence_without_language",
        r"""Try this:

```
total = 0
for i in range(1, 101):
    if i % 3 == 0 or i % 5 == 0:
        total += i
print(total)
```

This adds up all the multiples of 3 or 5 up to 100.
""",
        "2418",
    ),
    Shape(
        "fence_language_on_own_line",
        r"""```
python
squares = {n: n * n for n in range(1, 4)}
print(squares)
```
""",
        "{1: 1, 2: 4, 3: 9}",
    ),
    Shape(
        "fence_of_single_quotes",
        r"""Sure, here is the code:

'''python
def greet(name):
    return "Hello, " + name + "!"

print(greet("Tom"))
'''

This function returns a greeting.
""",
        "Hello, Tom!",
    ),
    Shape(
        "fence_opened_after_prose_on_line",
        r"""Here is the program: ```python
words = "one two three".split()
print("-".join(reversed(words)))
```
It reverses the order of the words.""",
        "three-two-one",
    ),
    Shape(
        "fence_all_on_one_line",
        "You can do it in one line: ```python print(sum(int(d) for d in str(2 ** 15)))```",
        "26",
    ),
    Shape(
        "fence_opened_twice",
        r"""```python
```python
import string

print(string.digits[::3])
```
""",
        "0369",
    ),
    Shape(
        "fence_never_closed",
        r"""Of course. This prints a small multiplication table:

```python
for row in range(1, 4):
    print(" ".join(f"{row * col:2d}" for col in range(1, 5)))
""",
        "1  2  3  4\n 2  4  6  8\n 3  6  9 12",
    ),
    Shape(
        "fence_only_closing_after_prefill",
        r"""def digits(n):
    return [int(c) for c in str(n)]

def is_harshad(n):
    return n % sum(digits(n)) == 0

print([n for n in range(10, 31) if is_harshad(n)])
```

This prints all Harshad numbers between 10 and 30.""",
        "[10, 12, 18, 20, 21, 24, 27, 30]",
    ),
    Shape(
        "fence_closing_forgotten_before_prose",
        r"""Here's the code:

```python
def initials(full_name):
    return ".".join(part[0] for part in full_name.split()) + "."

print(initials("Ada Byron King"))

This function splits the name at the blanks, takes the first letter of each part and joins them with dots.

I hope that helps! Let me know if you need anything else.
""",
        "A.B.K.",
    ),
    Shape(
        "fence_indented_in_numbered_list",
        r"""Follow these steps:

1. Create a file called `stack.py`.
2. Paste the following code into it:

   ```python
   stack = []
   for token in "3 4 + 2 *".split():
       if token.isdigit():
           stack.append(int(token))
       else:
           b, a = stack.pop(), stack.pop()
           stack.append(a + b if token == "+" else a * b)
   print(stack)
   ```

3. Run it with `python stack.py`.
""",
        "[14]",
    ),
    Shape(
        "fence_in_blockquote",
        r"""Someone on the forum posted this answer:

> You can use `zip` with a slice:
>
> ```python
> values = [1, 4, 9, 16]
> differences = [b - a for a, b in zip(values, values[1:])]
> print(differences)
> ```
>
> Works for any sequence.

I agree with that suggestion.
""",
        "[3, 5, 7]",
    ),
    Shape(
        "fence_crlf_line_ends",
        "Sure!\r\n\r\n```python\r\ndef double(x):\r\n    return 2 * x\r\n\r\nprint(double(21))\r\n```\r\n\r\n"
        "Have fun!\r\n",
        "42",
    ),
    Shape(
        "fence_closing_on_code_line",
        r"""```python
pairs = [(x, y) for x in "ab" for y in (1, 2)]
for x, y in pairs:
    print(x, y)```
""",
        "a 1\na 2\nb 1\nb 2",
    ),
    Shape(
        "fence_tagged_plaintext",
        r"""Here is the updated script.

```plaintext
import itertools

for letters in itertools.combinations("ABC", 2):
    print("".join(letters))
```

I replaced the nested loops with `itertools.combinations`.
""",
        "AB\nAC\nBC",
    ),
    Shape(
        "fence_closed_with_tag_again",
        r"""```python
def clamp(value, low, high):
    return max(low, min(high, value))

print(clamp(15, 0, 10), clamp(-3, 0, 10), clamp(7, 0, 10))
```python

The function limits the value to the given range.
""",
        "10 0 7",
    ),
    Shape(
        "fence_output_also_tagged_python",
        r"""```python
def table(name, *scores):
    print(f"{name}: {', '.join(map(str, scores))}")

table("Ana", 3, 5)
table("Bo", 8)
```

Output:

```python
Ana: 3, 5
Bo: 8
```
""",
        "Ana: 3, 5\nBo: 8",
    ),
    Shape(
        "fence_same_program_repeated_in_loop",
        r"""```python
x = [1, 2, 3]
print(x[-1])
```

The code above prints the last element of the list.

```python
x = [1, 2, 3]
print(x[-1])
```

The code above prints the last element of the list.

```python
x = [1, 2, 3]
print(x[-1])
```

The code above prints the last element of the list.
""",
        "3",
    ),
    # ---------------------------------------------------------------- reasoning, tags and chat tokens
    Shape(
        "think_with_draft_then_answer",
        r"""<think>
The user wants the second largest number. A first idea:

```python
def second(values):
    return sorted(values)[1]

print(second([4, 9, 7]))
```

Hmm, no: that is the second *smallest*. And duplicates have to be removed. So sorted(set(values))[-2].
</think>

Here's the function:

```python
def second_largest(values):
    return sorted(set(values))[-2]

print(second_largest([4, 9, 7, 9]))
```

`set` removes the duplicates, so `9` is counted only once.
""",
        "7",
    ),
    Shape(
        "think_only_closing_tag",
        r"""Okay, the user asks for the digital root. I could loop: while n > 9: n = sum of digits. Let me
check with
9875: 9+8+7+5 = 29, 2+9 = 11, 1+1 = 2. Good.
</think>

```python
def digital_root(n):
    while n > 9:
        n = sum(map(int, str(n)))
    return n

print(digital_root(9875))
```
""",
        "2",
    ),
    Shape(
        "think_empty_then_answer",
        r"""<think>

</think>

Here is a Python script that prints a right-aligned triangle:

```python
height = 3
for i in range(1, height + 1):
    print(("*" * i).rjust(height, "."))
```
""",
        "..*\n.**\n***",
    ),
    Shape(
        "reasoning_german_gedanken_tag",
        r"""<reasoning>
Der Nutzer möchte die Quersumme. Man könnte `str` benutzen oder mit `% 10` rechnen. Ich nehme `divmod`.
</reasoning>
<answer>
```python
def quersumme(n):
    summe = 0
    while n:
        n, ziffer = divmod(n, 10)
        summe += ziffer
    return summe

print(quersumme(98761))
```
</answer>
""",
        "31",
    ),
    Shape(
        "harmony_analysis_and_final_channel",
        r"""<|channel|>analysis<|message|>We need to output a Python program. Maybe use print("test") first?
No, the
final answer should compute the median.<|end|><|start|>assistant<|channel|>final<|message|>Here's the program:

```python
from statistics import median

print(median([9, 2, 5]))
```
<|return|>""",
        "5",
    ),
    Shape(
        "harmony_commentary_to_python",
        r"""<|channel|>analysis<|message|>I should compute this with the
tool.<|end|><|start|>assistant<|channel|>"""
        r"""commentary to=python <|constrain|>code<|message|>import math

print(math.comb(10, 3))
print(math.perm(5, 2))<|call|>""",
        "120\n20",
    ),
    Shape(
        "im_end_after_fence",
        r"""<|im_start|>assistant
```python
days = ["Mon", "Tue", "Wed"]
for number, day in enumerate(days, start=1):
    print(number, day)
```<|im_end|>
""",
        "1 Mon\n2 Tue\n3 Wed",
    ),
    Shape(
        "eos_after_bare_code",
        r"""def power(base, exponent):
    result = 1
    for _ in range(exponent):
        result *= base
    return result

print(power(3, 5))</s>""",
        "243",
    ),
    Shape(
        "endoftext_then_unrelated_text",
        r"""def merge(a, b):
    out = []
    while a and b:
        out.append((a if a[0] <= b[0] else b).pop(0))
    return out + a + b

print(merge([1, 4, 6], [2, 3, 9]))
<|endoftext|>The history of the city of Toulouse goes back to the eighth century before Christ. The city was
a military outpost at the time of the Romans.
""",
        "[1, 2, 3, 4, 6, 9]",
    ),
    Shape(
        "llama_python_tag",
        r"""<|python_tag|>total = 0
for n in range(1, 6):
    total += n ** 2
print(total)<|eom_id|>""",
        "55",
    ),
    Shape(
        "llama_header_tokens",
        r"""<|start_header_id|>assistant<|end_header_id|>

Here is how to remove duplicates while keeping the order:

```python
items = ["b", "a", "b", "c", "a"]
print(list(dict.fromkeys(items)))
```

`dict` keeps the insertion order.<|eot_id|>""",
        "['b', 'a', 'c']",
    ),
    Shape(
        "phi_user_turn_hallucinated",
        r"""<|assistant|>
```python
def is_pangram(text):
    return set("abcdefghijklmnopqrstuvwxyz") <= set(text.lower())

print(is_pangram("Sphinx of black quartz, judge my vow"))
```
<|end|>
<|user|>
Thanks! Can you explain what a pangram is?
<|end|>
<|assistant|>
A pangram is a sentence that contains every letter of the alphabet.
<|end|>""",
        "True",
    ),
    Shape(
        "alpaca_response_then_next_instruction",
        r"""### Response:
def area(width, height):
    return width * height

print("Area:", area(6, 7))

### Instruction:
Write a short poem about the sea.

### Response:
The sea is wide, the sea is blue,
it sings a song for me and you.
""",
        "Area: 42",
    ),
    # ---------------------------------------------------------------- tool calls and agents
    Shape(
        "hermes_tool_call_json",
        r"""I'll calculate that for you.

<tool_call>
{"name": "python", "arguments": {"code": "rate = 0.05\namount = 1000.0\nfor year in range(2):\n    """
        r"""amount *= 1 + rate\nprint(f\"{amount:.2f}\")"}}
</tool_call>""",
        "1102.50",
    ),
    Shape(
        "mistral_tool_calls_token",
        r"""[TOOL_CALLS][{"name": "code_interpreter", "arguments": {"code": """
        r""""words = ['pear', 'fig', 'apple']\n"""
        r"""print(max(words, key=len))\nprint(min(words))"}, "id": "VvvODy9mT"}]</s>""",
        "apple\napple",
    ),
    Shape(
        "qwen_coder_function_parameter",
        r"""Let me run this.

<tool_call>
<function=run_python>
<parameter=code>
grid = [[0] * 3 for _ in range(2)]
grid[1][2] = 5
for row in grid:
    print(row)
</parameter>
</function>
</tool_call>""",
        "[0, 0, 0]\n[0, 0, 5]",
    ),
    Shape(
        "invoke_with_parameter_xml",
        r"""I'll check it with a short script.

<function_calls>
<invoke name="execute_python">
<parameter name="code">
low, high = 1, 100
guesses = []
while low <= high:
    mid = (low + high) // 2
    guesses.append(mid)
    if mid == 71:
        break
    if mid < 71:
        low = mid + 1
    else:
        high = mid - 1
print(guesses)
</parameter>
</invoke>
</function_calls>""",
        "[50, 75, 62, 68, 71]",
    ),
    Shape(
        "openai_tool_calls_double_encoded",
        r"""{
  "role": "assistant",
  "content": null,
  "tool_calls": [
    {
      "id": "call_8Zk2",
      "type": "function",
      "function": {
        "name": "python",
        "arguments": "{\"code\": \"parts = 'a-b-c'.split('-')\\nprint(len(parts), parts[-1])\"}"
      }
    }
  ]
}""",
        "3 c",
    ),
    Shape(
        "json_call_in_json_fence",
        r"""To answer this, I need to execute some code:

```json
{
  "tool": "python_interpreter",
  "input": {
    "code": "from math import gcd\n\ncoprime = [n for n in range(1, 13) if gcd(n, 12) == 1]\nprint(coprime)"
  }
}
```
""",
        "[1, 5, 7, 11]",
    ),
    Shape(
        "glm_arg_key_arg_value",
        r"""<tool_call>execute_python
<arg_key>code</arg_key>
<arg_value>temps = [21.5, 19.0, 24.0]
print(round(sum(temps) / len(temps), 1))
print("warmest:", max(temps))</arg_value>
</tool_call>""",
        "21.5\nwarmest: 24.0",
    ),
    Shape(
        "deepseek_tool_call_tokens",
        r"""<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python
```json
{"code": "s = 'mississippi'\nprint({c: s.count(c) for c in sorted(set(s))})"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>""",
        "{'i': 4, 'm': 1, 'p': 2, 's': 4}",
    ),
    Shape(
        "react_action_input",
        r"""Thought: I need to work out how many days there are between the two dates. I will use Python.
Action: python_repl
Action Input: from datetime import date
delta = date(2023, 12, 25) - date(2023, 10, 31)
print(delta.days)
Observation: 55
Thought: I now know the final answer.
Final Answer: There are 55 days between Halloween and Christmas.
""",
        "55",
    ),
    Shape(
        "react_fenced_action_input",
        r"""Question: What is the sum of the first ten odd numbers?

Thought: The answer can be computed directly.

Action: Python

Action Input:
```python
odd = [2 * k + 1 for k in range(10)]
print(odd[-1], sum(odd))
```
""",
        "19 100",
    ),
    Shape(
        "smolagents_code_end_code",
        r"""Thought: I will count the letters of the longest word and return the result with `print`.
Code:
```py
sentence = "the extraordinarily quick brown fox"
longest = max(sentence.split(), key=len)
print(longest, len(longest))
```<end_code>""",
        "extraordinarily 15",
    ),
    Shape(
        "smolagents_code_tags",
        r"""Thought: Let me calculate the compound growth step by step.

<code>
value = 8
for step in range(3):
    value = value * 3 // 2
    print(step, value)
</code>""",
        "0 12\n1 18\n2 27",
    ),
    Shape(
        "codeact_execute_tag",
        r"""The binary representation can be inspected directly.

<execute>
for n in (5, 10, 255):
    print(n, format(n, "b"), format(n, "x"))
</execute>""",
        "5 101 5\n10 1010 a\n255 11111111 ff",
    ),
    Shape(
        "gemma_tool_code_fence",
        r"""Okay, I can help you with that.

```tool_code
prices = {"apple": 0.5, "melon": 3.25}
print(sum(prices.values()))
```<end_of_turn>
""",
        "3.75",
    ),
    Shape(
        "json_solution_holding_a_fence",
        r"""{
  "explanation": "The function walks through the string once and compresses runs of equal letters.",
  "solution": "```python\nfrom itertools import groupby\n\n\ndef rle(s):\n    return ''.join(f'{k}"""
        r"""{len(list(g))}' for k, g in groupby(s))\n\n\nprint(rle('aaabccd'))\n```"
}""",
        "a3b1c2d1",
    ),
    Shape(
        "mbpp_begin_done_then_next_task",
        r"""[BEGIN]
def first_repeated(text):
    seen = set()
    for ch in text:
        if ch in seen:
            return ch
        seen.add(ch)
    return None

print(first_repeated("abcabc"), first_repeated("abc"))
[DONE]

You are an expert Python programmer, and here is your task: Write a function to find the volume of a cone.
""",
        "a None",
    ),
    # ---------------------------------------------------------------- other markup around the program
    Shape(
        "html_pre_code_with_entities",
        r"""<p>Here is the solution:</p>
<pre><code class="language-python">for n in range(1, 8):
    if n &lt; 3 or n &gt; 6:
        print(n, &quot;outside&quot;)
    elif n &amp; 1:
        print(n, &quot;odd&quot;)
</code></pre>
<p>The loop skips the even numbers between 3 and 6.</p>
""",
        "1 outside\n2 outside\n3 odd\n5 odd\n7 outside",
    ),
    Shape(
        "latex_lstlisting",
        r"""\section*{Solution}
The following program evaluates the polynomial with Horner's method.

\begin{lstlisting}[language=Python]
def horner(coefficients, x):
    result = 0
    for c in coefficients:
        result = result * x + c
    return result

print(horner([2, -6, 2, -1], 3))
\end{lstlisting}

The number of multiplications equals the degree of the polynomial.
""",
        "5",
    ),
    Shape(
        "yaml_code_block_scalar",
        r"""thought: The user wants to know which numbers below 50 are both square and triangular.
tool: python
code: |
  squares = {n * n for n in range(1, 8)}
  triangles = {n * (n + 1) // 2 for n in range(1, 10)}
  print(sorted(squares & triangles))
""",
        "[1, 36]",
    ),
    Shape(
        "jupyter_notebook_json",
        r"""{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": ["# Demo\n", "A tiny notebook."]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "metadata": {},
   "outputs": [],
   "source": ["data = [2, 4, 6]\n", "mean = sum(data) / len(data)"]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "metadata": {},
   "outputs": [],
   "source": ["print('mean', mean)\n", "print('max', max(data))"]
  }
 ],
 "metadata": {"language_info": {"name": "python"}},
 "nbformat": 4,
 "nbformat_minor": 5
}""",
        "mean 4.0\nmax 6",
    ),
    # ---------------------------------------------------------------- bare code, prompts, numbers, escapes
    Shape(
        "bare_program_only",
        r'''"""Print the Easter dates of three years (anonymous Gregorian algorithm)."""


def easter(year):
    a = year % 19
    b, c = divmod(year, 100)
    d, e = divmod(b, 4)
    f = (b + 8) // 25
    g = (b - f + 1) // 3
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    l = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * l) // 451
    month, day = divmod(h + l - 7 * m + 114, 31)
    return f"{year}-{month:02d}-{day + 1:02d}"


if __name__ == "__main__":
    for year in (2023, 2024, 2025):
        print(easter(year))
''',
        "2023-04-09\n2024-03-31\n2025-04-20",
    ),
    Shape(
        "bare_code_between_chinese_prose",
        r"""你可以用下面的代码来实现：

def is_prime(n):
    if n < 2:
        return False
    for i in range(2, int(n ** 0.5) + 1):
        if n % i == 0:
            return False
    return True

print([n for n in range(20) if is_prime(n)])

解释：函数 is_prime 会检查从 2 到根号 n 的所有整数，如果都不能整除 n，那么 n 就是质数。
""",
        "[2, 3, 5, 7, 11, 13, 17, 19]",
    ),
    Shape(
        "bare_code_after_label_with_explanation",
        r"""Code:
import json

record = {"id": 7, "tags": ["x", "y"]}
text = json.dumps(record)
print(text)
print(json.loads(text)["tags"][1])

Explanation:
The dictionary is converted to a JSON string with json.dumps and back to a dictionary with json.loads.
""",
        '{"id": 7, "tags": ["x", "y"]}\ny',
    ),
    Shape(
        "bare_code_then_output_section",
        r"""a, b = 3, 4
c = (a ** 2 + b ** 2) ** 0.5
print("Hypotenuse:", c)

Output:
Hypotenuse: 5.0
""",
        "Hypotenuse: 5.0",
    ),
    Shape(
        "copied_chat_page_copy_code",
        r"""Sure! Here's how to do it:

python
Copy code
def merge_dicts(*dicts):
    merged = {}
    for d in dicts:
        merged.update(d)
    return merged

print(merge_dicts({"a": 1}, {"b": 2}, {"a": 3}))

In this example, later dictionaries override earlier ones.
""",
        "{'a': 3, 'b': 2}",
    ),
    Shape(
        "line_numbers_with_bar",
        r"""```
 1 | def countdown(n):
 2 |     while n:
 3 |         yield n
 4 |         n -= 1
 5 |
 6 | for value in countdown(3):
 7 |     print(value)
 8 | print("Lift-off!")
```

In line 3 the generator is suspended until the next value is requested.
""",
        "3\n2\n1\nLift-off!",
    ),
    Shape(
        "line_numbers_with_colon_bare",
        r"""1: total = 0
2: for n in range(10):
3:     if n % 2:
4:         continue
5:     total += n
6: print("even sum", total)
""",
        "even sum 20",
    ),
    Shape(
        "interactive_prompts_with_continuation",
        r"""You can try it in the interactive interpreter:

```
>>> def mirror(word):
...     return word + word[::-1]
...
>>> print(mirror("abc"))
abccba
>>> for w in ("no", "top"):
...     print(mirror(w))
...
noon
toppot
```
""",
        "abccba\nnoon\ntoppot",
    ),
    Shape(
        "ipython_in_out_prompts",
        r"""In [1]: import math

In [2]: radius = 2

In [3]: print(round(math.pi * radius ** 2, 3))
12.566

In [4]: def diameter(r):
   ...:     return 2 * r
   ...:

In [5]: print(diameter(radius))
4
""",
        "12.566\n4",
    ),
    Shape(
        "unified_diff_replaces_lines",
        r"""This patch fixes the off-by-one error:

```diff
--- a/squares.py
+++ b/squares.py
@@ -1,5 +1,5 @@
 def squares_up_to(n):
-    return [i * i for i in range(n)]
+    return [i * i for i in range(1, n + 1)]

-print(squares_up_to(4), "old")
+print(squares_up_to(4))
```
""",
        "[1, 4, 9, 16]",
    ),
    Shape(
        "notebook_magics_in_fence",
        r"""Run this in a Colab cell:

```python
%matplotlib inline
!pip install --quiet rich

import calendar

first_weekday, days = calendar.monthrange(2024, 2)
print(days)
```
""",
        "29",
    ),
    Shape(
        "shell_heredoc_writes_and_runs",
        r"""Run these commands in your terminal:

```bash
mkdir -p demo && cd demo
cat > main.py << 'EOF'
import sys

def shout(text):
    sys.stdout.write(text.upper() + "!\n")

shout("it works")
EOF
python3 main.py
```

You should see `IT WORKS!` on the screen.
""",
        "IT WORKS!",
    ),
    Shape(
        "whole_reply_with_escaped_newlines",
        r"""def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\n\nprint(fact(6))\n""",
        "720",
    ),
    Shape(
        "reply_is_a_json_string",
        r'''"import string\n\nletters = string.ascii_lowercase[:5]\nprint(\"|\".join(letters))\n"''',
        "a|b|c|d|e",
    ),
    Shape(
        "fence_with_escaped_newlines",
        r"""```python\nnums = [1, 2, 3]\nfor n in nums:\n    print(n * 10)\n```""",
        "10\n20\n30",
    ),
    Shape(
        "markdown_escaped_underscores_and_stars",
        r"""Here is the program:

class Point:
    def \_\_init\_\_(self, x, y):
        self.x, self.y = x, y

    def \_\_add\_\_(self, other):
        return Point(self.x + other.x, self.y + other.y)

p = Point(1, 2) + Point(3, 4)
print(p.x \* 10, p.y \*\* 2)
""",
        "40 36",
    ),
    Shape(
        "typographic_quotes_as_delimiters",
        "Here is the code:\n\n```python\ncolours = {‘red’: 3, ‘blue’: 5}\nfor name in colours:\n"
        "    print(“Colour”, name, colours[name])\n```\n",
        "Colour red 3\nColour blue 5",
    ),
    Shape(
        "no_break_spaces_as_indentation",
        "Voici le code :\n\nfor i in range(3):\n\u00a0\u00a0\u00a0\u00a0if i != 1:\n"
        "\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0\u00a0print(i, i ** 3)\n",
        "0 0\n2 8",
    ),
    Shape(
        "byte_order_mark_and_zero_width_spaces",
        "\ufeff```python\n\u200bfrom functools import reduce\n\n"
        "print(reduce(lambda a, b: a * b, [1, 2, 3, 4, 5]))\u200b\n"
        "```\n",
        "120",
    ),
    Shape(
        "tabs_as_indentation",
        "```python\ndef depth(x):\n\tif isinstance(x, list):\n\t\treturn 1 + max(map(depth, x), default=0)\n"
        "\treturn 0\n\nprint(depth([1, [2, [3]], []]))\n```\n",
        "3",
    ),
    Shape(
        "html_entities_inside_markdown_fence",
        r"""```python
def sign(x):
    return &quot;negative&quot; if x &lt; 0 else &quot;positive&quot; if x &gt; 0 else &quot;zero&quot;

print(sign(-4), sign(0), sign(9))
```
""",
        "negative zero positive",
    ),
    Shape(
        "fullwidth_punctuation_in_code",
        r"""```python
names = ["小明", "小红"]
for name in names：
    print（"你好，" + name）
```
""",
        "你好，小明\n你好，小红",
    ),
    Shape(
        "inline_code_one_liner",
        r"""The shortest way is a single expression: `print(", ".join(str(n) for n in range(5, 0, -1)))`. It
joins the numbers from 5 down to 1 with commas.""",
        "5, 4, 3, 2, 1",
    ),
    Shape(
        "code_on_the_line_of_the_label",
        "Answer: print(sum(n for n in range(50) if n % 7 == 0))",
        "196",
    ),
    Shape(
        "indented_markdown_code_block",
        r"""Use a set to find the common elements:

    first = [1, 2, 3, 4]
    second = [3, 4, 5]

    common = sorted(set(first) & set(second))
    print(common)

The `&` operator computes the intersection of the two sets.
""",
        "[3, 4]",
    ),
    # ---------------------------------------------------------------- contents that may mislead
    Shape(
        "content_strings_with_chat_tokens",
        r"""This strips the special tokens from a model reply:

```python
import re

reply = "<|im_start|>assistant\nHello<|im_end|><think>hmm</think> world</s>"

cleaned = re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL)
cleaned = re.sub(r"<\|[^|]+\|>|</s>", "", cleaned)
print(cleaned)
```

The flag `re.DOTALL` is needed because the thoughts may span several lines.
""",
        "assistant\nHello world",
    ),
    Shape(
        "content_dictionary_like_tool_call",
        r"""```python
import json

def add(a, b):
    return a + b

TOOLS = {"add": add}

call = {"name": "add", "arguments": {"a": 2, "b": 40}}
print(json.dumps({"tool_call": call}))

result = TOOLS[call["name"]](**call["arguments"])
print({"role": "tool", "content": str(result)})
```
""",
        '{"tool_call": {"name": "add", "arguments": {"a": 2, "b": 40}}}\n'
        "{'role': 'tool', 'content': '42'}",
    ),
    Shape(
        "content_extracts_fences_with_regex",
        r'''Here's a helper that pulls the code out of a Markdown document. It is itself a nice exercise:

```python
import re

MARKDOWN = "Intro\n```python\nprint('inner')\n```\nOutro"

def code_blocks(text):
    """Return the contents of all ``` fences."""
    return re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)

for language, code in code_blocks(MARKDOWN):
    print(language, repr(code))
```

The non-greedy `.*?` stops at the first closing fence.
''',
        "python \"print('inner')\\n\"",
    ),
    Shape(
        "content_docstring_with_doctest_prompts",
        r'''def chunk_sum(values, size):
    """Add up consecutive chunks.

    >>> chunk_sum([1, 2, 3, 4, 5], 2)
    [3, 7, 5]
    >>> print(chunk_sum([], 3))
    []
    """
    return [sum(values[i:i + size]) for i in range(0, len(values), size)]


if __name__ == "__main__":
    import doctest

    print(doctest.testmod().failed)
    print(chunk_sum(range(6), 3))
''',
        "0\n[3, 12]",
    ),
    Shape(
        "content_program_prints_typographic_text",
        r"""```python
quote = "“Simple is better than complex.”"
author = 'Tim Peters – the Zen of Python'
print(quote, "—", author)
print(len("…"), "It’s fine")
```
""",
        "“Simple is better than complex.” — Tim Peters – the Zen of Python\n1 It’s fine",
    ),
    Shape(
        "content_entities_must_survive",
        r"""Here's the escaping helper you asked for:

```python
def escape(text):
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return text

print(escape("<a & b>"))
print(len("&lt;"))
```
""",
        "&lt;a &amp; b&gt;\n4",
    ),
    Shape(
        "content_generates_other_source_code",
        r'''```python
def make_sql(table, columns):
    lines = [f"CREATE TABLE {table} ("]
    lines += [f"    {name} {kind}," for name, kind in columns.items()]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join(lines + [");"])

SCRIPT = """#!/bin/bash
echo "hello"
"""

print(make_sql("users", {"id": "INTEGER", "name": "TEXT"}))
print(SCRIPT.splitlines()[1])
```''',
        'CREATE TABLE users (\n    id INTEGER,\n    name TEXT\n);\necho "hello"',
    ),
    Shape(
        "content_prose_in_triple_quoted_string",
        r'''Here is the text statistics program.

```python
TEXT = """
Here is the code:

Output:
Note: this is not code.
def is a keyword in Python.
"""

lines = [line for line in TEXT.splitlines() if line]
print(len(lines), "lines")
for line in lines:
    if ":" in line:
        print(line.partition(":")[0])
```
''',
        "4 lines\nHere is the code\nOutput\nNote",
    ),
    # ---------------------------------------------------------------- no Python program at all
    Shape(
        "none_refusal_english",
        r"""I'm sorry, but I can't help with that. Writing software that records someone's keystrokes without
their
knowledge is illegal in many places and could cause serious harm.

If you're worried about the security of your own computer, I'd be happy to explain how to detect such
programs or how to set up two-factor authentication.
""",
        None,
    ),
    Shape(
        "none_refusal_german",
        r"""Es tut mir leid, aber dabei kann ich nicht helfen. Das massenhafte Abfragen fremder Konten
verstößt
gegen die Nutzungsbedingungen und möglicherweise auch gegen geltendes Recht.

Gern erkläre ich dir stattdessen, wie die offizielle Schnittstelle funktioniert.
""",
        None,
    ),
    Shape(
        "none_clarifying_question_spanish",
        r"""Antes de escribir el programa necesito algunos datos:

1. ¿Qué formato tiene el archivo de entrada: CSV, JSON o Excel?
2. ¿Quieres que el resultado se muestre en la pantalla o se guarde en un archivo?
3. ¿Qué versión de Python utilizas?

En cuanto me respondas, preparo el código.
""",
        None,
    ),
    Shape(
        "none_explanation_of_lists_and_tuples",
        r"""Great question! Lists and tuples are both sequences, but there are important differences:

- **Mutability:** A list can be changed after it has been created, a tuple cannot.
- **Syntax:** Lists are written with square brackets, tuples with parentheses.
- **Hashing:** A tuple of hashable elements can be used as a key of a dictionary; a list cannot.

As a rule of thumb, use a list for a variable number of similar things, and a tuple for a fixed record. If in
doubt, start with a list. The method `append` is only available for lists.
""",
        None,
    ),
    Shape(
        "none_javascript_fence",
        r"""Here's a debounce helper in JavaScript:

```javascript
function debounce(fn, delay) {
  let timer = null;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), delay);
  };
}

const log = debounce((text) => console.log(text), 200);
log("hello");
```

The timer is restarted with every call.
""",
        None,
    ),
    Shape(
        "none_bash_installation_guide",
        r"""To install Python on Ubuntu, run:

```bash
sudo apt update
sudo apt install -y python3 python3-pip python3-venv
python3 --version
```

Then create a virtual environment:

```bash
python3 -m venv ~/venvs/demo
source ~/venvs/demo/bin/activate
pip install requests
```

That's all! To leave the environment, type `deactivate`.
""",
        None,
    ),
    Shape(
        "none_sql_query",
        r"""The following query lists the customers with the highest revenue:

```sql
SELECT c.name, SUM(o.total) AS revenue
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.id
WHERE o.created_at >= '2024-01-01'
GROUP BY c.name
ORDER BY revenue DESC
LIMIT 10;
```
""",
        None,
    ),
    Shape(
        "none_json_data",
        r"""Here is the extracted information as JSON:

```json
{
  "invoice": "2024-118",
  "customer": "Meyer Ltd.",
  "items": [
    {"name": "Paper", "quantity": 5, "price": 4.2},
    {"name": "Toner", "quantity": 1, "price": 79.0}
  ],
  "paid": false
}
```
""",
        None,
    ),
    Shape(
        "none_docker_compose_yaml",
        r"""```yaml
services:
  web:
    image: nginx:1.25
    ports:
      - "8080:80"
    depends_on:
      - db
  db:
    image: postgres:16
    environment:
      POSTGRES_PASSWORD: example
```

Start both containers with `docker compose up -d`.
""",
        None,
    ),
    Shape(
        "none_cpp_program_with_output",
        r"""```cpp
#include <iostream>
#include <vector>

int main() {
    std::vector<int> values{3, 1, 2};
    int sum = 0;
    for (int v : values) sum += v;
    std::cout << "Sum: " << sum << std::endl;
    return 0;
}
```

Output:

```
Sum: 6
```
""",
        None,
    ),
    Shape(
        "none_java_class_chinese_explanation",
        r"""下面是一个简单的 Java 示例：

```java
public class Main {
    static int add(int a, int b) {
        return a + b;
    }

    public static void main(String[] args) {
        System.out.println("结果：" + add(2, 3));
    }
}
```

编译并运行后会输出“结果：5”。
""",
        None,
    ),
    Shape(
        "none_html_page_untagged_fence",
        r"""```
<!DOCTYPE html>
<html lang="en">
<head><title>Hello</title></head>
<body>
  <h1>Hello, world!</h1>
  <button onclick="alert('Hi')">Click me</button>
</body>
</html>
```

Save this as `index.html` and open it in your browser.
""",
        None,
    ),
    Shape(
        "none_rust_program_bare",
        r"""fn main() {
    let numbers = vec![1, 2, 3];
    let total: i32 = numbers.iter().map(|n| n * n).sum();
    println!("total = {}", total);
}
""",
        None,
    ),
    Shape(
        "none_traceback_diagnosis",
        r"""The traceback tells you exactly what went wrong:

```
Traceback (most recent call last):
  File "app.py", line 12, in <module>
    main()
  File "app.py", line 8, in main
    total += row["amount"]
KeyError: 'amount'
```

Your input file has no column called "amount". Please check the header: it may be written with a capital
letter, or there may be a blank in front of the name.
""",
        None,
    ),
    Shape(
        "none_prose_lines_starting_with_keywords",
        r"""import duties were raised again last week, and the markets reacted nervously.
from Hamburg to Rotterdam, shipping companies are looking for new routes.
while nobody expects a quick solution, talks will continue on Monday.
if both sides agree, the tariffs could be lifted in spring;
for consumers this would mean lower prices.
""",
        None,
    ),
    Shape(
        "none_recipe_with_colons",
        r"""For the dough: mix the flour, the sugar and a pinch of salt in a large bowl.

With a wooden spoon: stir in the butter until the dough is smooth.

While the oven is heating up: peel the apples and cut them into slices.

If you like it sweeter: sprinkle some sugar on top.

Finally: bake for 40 minutes at 180 °C. Try to resist opening the oven!
""",
        None,
    ),
    Shape(
        "none_pseudocode_only",
        r"""PROCEDURE InsertionSort(list)
    FOR i FROM 2 TO LENGTH(list) DO
        key <- list[i]
        j <- i - 1
        WHILE j > 0 AND list[j] > key DO
            list[j + 1] <- list[j]
            j <- j - 1
        END WHILE
        list[j + 1] <- key
    END FOR
END PROCEDURE
""",
        None,
    ),
    Shape(
        "none_latex_derivation",
        r"""To solve $x^2 - 5x + 6 = 0$, we factor the left-hand side:

$$
x^2 - 5x + 6 = (x - 2)(x - 3) = 0
$$

Hence $x = 2$ or $x = 3$.

**Check:** $2^2 - 5 \cdot 2 + 6 = 0$ and $3^2 - 5 \cdot 3 + 6 = 0$. $\blacksquare$
""",
        None,
    ),
    Shape(
        "none_weather_tool_call",
        r"""I'll look up the current weather for you.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Madrid", "unit": "celsius"}}
</tool_call>""",
        None,
    ),
    Shape(
        "none_sql_tool_call",
        r"""[TOOL_CALLS][{"name": "run_query", "arguments": {"query": """
        r""""SELECT COUNT(*) FROM users WHERE active = 1"}}]""",
        None,
    ),
    Shape(
        "none_chinese_prose_about_loops",
        r"""在 Python 中，for 循环用于遍历一个序列，例如列表或字符串；while 循环则在条件成立时反复执行。

一般来说，如果事先知道循环次数，建议使用 for 循环；否则使用 while 循环。需要注意的是，
while 循环的条件如果永远为真，程序就会陷入死循环。

你想看一个具体的例子吗？
""",
        None,
    ),
    Shape(
        "none_arabic_explanation",
        r"""لغة بايثون لغة برمجة عالية المستوى وسهلة التعلم، وتُستخدم في تحليل البيانات والذكاء الاصطناعي
وتطوير الويب.

إذا كنت مبتدئًا، فأنصحك بأن تبدأ بالمتغيرات ثم الشروط والحلقات، وبعد ذلك الدوال والأصناف.

هل تريد أن أقترح عليك خطة للتعلم؟
""",
        None,
    ),
    Shape(
        "none_go_program_untagged_fence",
        r"""```
package main

import "fmt"

func main() {
    for i := 0; i < 3; i++ {
        fmt.Println("line", i)
    }
}
```
""",
        None,
    ),
    Shape(
        "none_think_then_plain_answer",
        r"""<think>
The user asks how many minutes there are in a week. 7 * 24 = 168 hours, 168 * 60 = 10080 minutes. No code is
needed for that.
</think>

A week has **10,080 minutes**: 7 days × 24 hours × 60 minutes.
""",
        None,
    ),
    Shape(
        "none_ini_settings",
        r"""Put the following lines into `settings.ini`:

```ini
[server]
host = localhost
port = 8080

[logging]
level = debug
file = /var/log/app.log
```

Restart the service afterwards.
""",
        None,
    ),
    Shape(
        "none_git_shell_session",
        r"""```console
$ git checkout -b feature/login
Switched to a new branch 'feature/login'
$ git add .
$ git commit -m "Add login form"
[feature/login 3f2a1bc] Add login form
 2 files changed, 48 insertions(+)
```

Now push the branch with `git push -u origin feature/login`.
""",
        None,
    ),
    Shape(
        "none_ruby_bare_with_prose",
        r"""In Ruby you would write it like this:

def greet(name)
  puts "Hello, #{name}!"
end

greet("Matz")

The `end` keyword closes the method.
""",
        None,
    ),
    Shape(
        "none_requirements_list",
        r"""Your `requirements.txt` should contain these packages:

```
flask==3.0.2
requests>=2.31
python-dotenv~=1.0
```
""",
        None,
    ),
)

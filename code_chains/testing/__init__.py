"""Test doubles and contracts, for the tests of this library and yours.

`ScriptedModel` computes replies from the messages, independent of the order of calls, so that batches,
retries and threads are deterministic. `ExecutorContract` is a test suite for executors, to be inherited.
"""

from code_chains._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)

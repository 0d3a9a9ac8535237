"""What runs inside the sandbox, on the standard library alone and any Python from 3.11; the host's chains never import it.

`worker` preloads libraries and forks. The first process of each fork is the `supervisor`, out of the
program's reach; it forks the `program`, which isolates itself with `confine` before it runs anything.
"""

"""What runs inside the box: the standard library alone, for any Python from 3.11, and never imported by the host's chains.

`worker` preloads libraries and forks; each fork is a `watcher`, which stays outside the program's reach, and the
`program`, which locks itself in with `confine` before it runs anything.
"""

"""What runs inside the sandbox, on the standard library alone and any Python from 3.11; the host's chains never import it.

`worker` forks: a `supervisor` for each sandbox, out of its programs' reach, and `spawner` processes with preloaded
libraries. Those are forked for `template` processes, which are confined in a sandbox and are forked for each `program`.
"""

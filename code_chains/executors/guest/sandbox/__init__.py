"""The kernel sandbox from within: processes that isolate programs, supervise them and hold the state of sessions.

`worker` forks: a `supervisor` for each sandbox, out of its programs' reach, and `spawner` processes with preloaded
libraries. Those are forked for `template` processes, which are confined in a sandbox and are forked for each `program`. In
a sandbox of somebody else, `session_server` forks the supervisor.
"""

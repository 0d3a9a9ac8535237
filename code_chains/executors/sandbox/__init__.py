"""The kernel sandbox: warm workers, and a fork of one for each run, isolated by the kernel."""

"""Calls of the kernel for which Python has no functions."""

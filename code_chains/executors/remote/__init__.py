"""Executors on engines of others: containers, sandboxes of a protocol, hosted services."""

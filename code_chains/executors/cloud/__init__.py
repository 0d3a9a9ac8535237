"""Sandboxes of E2B, Modal and Daytona that belong to an executor: created on first use, deleted with it."""

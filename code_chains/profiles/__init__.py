"""Profiles of files for prompts: computed by a program in the executor that will run the answer, validated, rendered."""

from code_chains.profiles.profiler import FileProfiler

__all__ = ["FileProfiler"]

"""Profiles of files for prompts: computed by a program in the executor that will run the answer, validated, rendered."""

from code_chains.profiles.description import describe, describe_inputs
from code_chains.profiles.profiler import FileProfiler, Profiles
from code_chains.profiles.variables import is_table, profile_variables

__all__ = ["FileProfiler", "Profiles", "describe", "describe_inputs", "is_table", "profile_variables"]

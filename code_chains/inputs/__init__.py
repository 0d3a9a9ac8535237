"""The inputs of a question: its text, files and variables, validated early."""

from code_chains.inputs.files import MAX_FILES, check_files, check_name, files_on_disk, walk_folder
from code_chains.inputs.messages import as_state
from code_chains.inputs.pasted import Paste, files_with, find_data, find_pasted, without_references
from code_chains.inputs.text import (
    MAX_QUERY_CHARS,
    FencedText,
    check_code,
    check_history,
    check_keys,
    check_query,
    check_session_id,
    fenced,
    shortened,
)
from code_chains.inputs.variables import VARIABLES_REMEDY, table_kind

__all__ = [
    "MAX_FILES",
    "MAX_QUERY_CHARS",
    "VARIABLES_REMEDY",
    "FencedText",
    "Paste",
    "as_state",
    "check_code",
    "check_files",
    "check_history",
    "check_keys",
    "check_name",
    "check_query",
    "check_session_id",
    "fenced",
    "files_on_disk",
    "files_with",
    "find_data",
    "find_pasted",
    "shortened",
    "table_kind",
    "walk_folder",
    "without_references",
]

"""Any GGUF file of the model hub by its name: downloaded once, verified by the checksum that the hub states."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from code_chains.errors import CodeChainsError, ConfigurationError, WeightsError, needs
from code_chains.models.downloads import (
    Partial,
    check_disk_space,
    file_size,
    is_verified,
    make_private,
    models_directory,
    remember,
    show_progress,
)
from code_chains.records.printable import printable
from code_chains.storage.files import atomic_write, sha256_file

PREFIX = "hf:"
_REMEDY = (
    "a name of the form hf:OWNER/REPO:FILE.gguf (@REVISION may follow), e.g."
    ' "hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"'
)
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,95}"
_SEGMENT = r"[A-Za-z0-9_](?:[A-Za-z0-9_+\ ()=,~-]|\.(?!\.))*"
_NAME = re.compile(
    rf"""
    (?P<repository>{_WORD}/{_WORD})
    :(?P<file>{_SEGMENT}(?:/{_SEGMENT})*)
    (?:@(?P<revision>[A-Za-z0-9](?:[A-Za-z0-9_-]|[./](?![./])){{0,150}}))?
    """,
    re.VERBOSE | re.ASCII,
)
_MAX_FILE_CHARS = 150
_PART = re.compile(r"-\d{5}-of-(?!00001)\d{5}\.gguf", re.ASCII | re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIMEOUT_S = 10.0
_MARGIN = 1.05
"""What must be free on the disk in proportion to the file."""


class Record(NamedTuple):
    """What is known of a file before it is downloaded: its size and checksum."""

    size: int
    sha256: str


@dataclass(frozen=True)
class HubFile:
    """A GGUF file of the model hub.

    Attributes:
        repository: Its repository, `OWNER/REPO`.
        file: Its path there.
        name: The name by which chains take it.
        title: The name in traces and messages: `OWNER/REPO:FILE`, and the revision if one was asked for.
        revision: A branch, tag or commit; nothing for the newest.
    """

    repository: str
    file: str
    name: str
    title: str
    revision: str = ""

    @classmethod
    def parse(cls, name: str) -> HubFile:
        """Parse `hf:OWNER/REPO:FILE` or `hf:OWNER/REPO:FILE@REVISION`.

        Raises:
            ConfigurationError: It has another form, or names a part of a split model.
        """
        title = name.removeprefix(PREFIX)
        found = _NAME.fullmatch(title)
        if not found or not found["file"].lower().endswith(".gguf") or len(found["file"]) > _MAX_FILE_CHARS:
            raise ConfigurationError("model", name, _REMEDY)
        if _PART.search(found["file"]):
            remedy = (
                "a file that is whole: this one is a part of a split model"
                " (or join its parts with `llama-gguf-split --merge` and use gguf:PATH)"
            )
            raise ConfigurationError("model", name, remedy)
        return cls(found["repository"], found["file"], PREFIX + title, title, found["revision"] or "")

    @property
    def path(self) -> Path:
        """The path of the file once it is installed."""
        folder = _folder() / self.repository / quote(self.revision or "main", safe="")
        return folder / quote(self.file, safe=" ()+,=")

    @property
    def record(self) -> Record | None:
        """What the hub stated of the installed file; nothing if it is not installed."""
        try:
            record = json.loads(self._record_path.read_bytes())
            return Record(int(record["size"]), str(record["sha256"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    @property
    def sha256(self) -> str:
        """The checksum of the installed file; nothing if it is not installed."""
        return record.sha256 if (record := self.record) else ""

    def is_installed(self) -> bool:
        """Return whether a file of its size exists; `install` verifies it."""
        record = self.record
        return record is not None and file_size(self.path) == record.size

    def install(self, *, quiet: bool = False) -> Path:
        """Download and verify the file unless it is installed, with a progress bar on standard error.

        An installed file is verified by its checksum once per process, and again if it has changed. The hub is
        asked only for a file that is not installed. Interrupted downloads are resumed. If several processes
        install it concurrently, one of them downloads it.

        Args:
            quiet: Whether to hide the progress bar.

        Raises:
            ConfigurationError: There is no such repository, revision or file, or it has another format.
            WeightsError: No source can be reached or gives access, the disk is full, or the checksum differs.
        """
        if self._is_verified():
            return self.path
        from filelock import FileLock

        make_private(models_directory())
        make_private(self.path.parent)
        try:
            with FileLock(f"{self.path}.lock"):
                if not self._is_verified():
                    self._verify_and_install(self._fetch(quiet=quiet))
        except OSError as error:
            raise WeightsError(
                f"{self.title} cannot be installed in {models_directory()}: {error}. Set CODE_CHAINS_MODELS to a folder"
                " that can be written to."
            ) from error
        return self.path

    def remove(self) -> bool:
        """Delete the file and partial downloads, and return whether there were any."""
        paths = [path for path in (self.path, self._record_path, *self._partials()) if path.exists()]
        _delete(paths)
        return bool(paths)

    # -- what is installed -----------------------------------------------------------------------------------

    @property
    def _record_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def _partial(self, record: Record) -> Path:
        """Return where a download is kept until it is whole; contents do not mix."""
        return self.path.with_name(f"{self.path.name}.{record.sha256[:16]}.partial")

    def _partials(self) -> list[Path]:
        """Return what interrupted downloads have left."""
        return list(self.path.parent.glob(f"{glob.escape(self.path.name)}.*.partial"))

    def _is_verified(self) -> bool:
        record = self.record
        return record is not None and is_verified(self.path, *record)

    def _verify_and_install(self, record: Record) -> None:
        partial = self._partial(record)
        with partial.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
        checksum = sha256_file(partial)
        if checksum != record.sha256 or not is_gguf:
            _delete(self._partials())
        if checksum != record.sha256:
            raise WeightsError(
                f"The download of {self.title} has the SHA-256 {checksum} instead of {record.sha256}."
                " It was deleted; try again."
            )
        if not is_gguf:
            raise ConfigurationError("model", self.name, "a GGUF file; this file has another format")
        self._keep(record)
        os.replace(partial, self.path)
        remember(self.path, record.sha256)
        _delete(self._partials())

    def _keep(self, record: Record) -> None:
        atomic_write(self._record_path, json.dumps(record._asdict()).encode(), mode=0o600)

    # -- the hub ---------------------------------------------------------------------------------------------

    def _fetch(self, *, quiet: bool) -> Record:
        """Download to the partial file, beginning where an earlier download ended."""
        with needs("local", "model", self.name):
            import huggingface_hub  # noqa: F401
        try:
            address, record = self._ask()
            self._stream(address, record, quiet=quiet)
        except CodeChainsError:
            raise
        except Exception as error:  # The exceptions of the hub's client have no common base class.
            raise self._failure(error) from None  # Its message may contain what a server echoed.
        return record

    def _ask(self) -> tuple[str, Record]:
        """Ask the hub where the file is, and for its size and checksum."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        url = hf_hub_url(self.repository, self.file, revision=self.revision or None)
        metadata = get_hf_file_metadata(url, timeout=_TIMEOUT_S)
        return metadata.location or url, self._expected(metadata.size, metadata.etag or "")

    def _expected(self, size: int | None, etag: str) -> Record:
        """Return what the file must be, of what the hub states."""
        if size is None or not _SHA256.fullmatch(etag):
            raise WeightsError(
                f"{self.title} cannot be verified, as the hub states no size or SHA-256 of it."
                " Download it in another way and use model='gguf:PATH'."
            )
        return Record(size, etag)

    def _stream(self, address: str, record: Record, *, quiet: bool) -> None:
        from huggingface_hub import constants, get_token
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        is_hub = urlsplit(address)[:2] == urlsplit(constants.ENDPOINT)[:2]
        gets_token = is_hub and not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN  # No other server gets the token.
        token = get_token() if gets_token else None
        headers = {"authorization": f"Bearer {token}"} if token else {}
        with self._downloading(record, quiet=quiet) as file:
            http_get(address, file, resume_size=file.tell(), headers=headers, expected_size=record.size)

    @contextmanager
    def _downloading(self, record: Record, *, quiet: bool) -> Iterator[Partial]:
        """Open the partial file, with a progress bar, if the disk has room for the rest of it."""
        partial = self._partial(record)
        if file_size(partial) > record.size:
            partial.unlink()
        check_disk_space(self.title, int((record.size - file_size(partial)) * _MARGIN))
        title = f"Downloading {self.title}"
        with (
            show_progress(title, record.size, quiet=quiet) as progress,
            Partial(partial, record.size, progress) as file,
        ):
            yield file

    def _failure(self, error: Exception) -> CodeChainsError:
        """Return what to raise for an error of the hub's client."""
        from huggingface_hub import errors

        place = f"https://huggingface.co/{self.repository}"
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, errors.GatedRepoError):
            return self._no_access()
        if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
            remedy = "a repository that exists; if it is private or gated, set HF_TOKEN"
        elif isinstance(error, errors.RevisionNotFoundError):
            remedy = f"a revision that exists, see {place}/commits/main"
        elif isinstance(error, errors.EntryNotFoundError) or status == 404:
            remedy = f"a file that exists, see {place}/tree/main"
        elif status in (401, 403):
            return self._no_access()
        else:
            return WeightsError(
                f"{self.title} cannot be downloaded: {_described(error)}. Connect to the network and try again, or"
                " obtain the file elsewhere and use model='gguf:PATH'."
            )
        return ConfigurationError("model", self.name, remedy)

    def _no_access(self) -> WeightsError:
        return WeightsError(
            f"The hub gives no access to {self.title}, which is gated or private: accept its conditions on"
            f" https://huggingface.co/{self.repository}, if it has any, and set HF_TOKEN to a token of an account that"
            " may read it."
        )


def installed_hub_files() -> Iterator[HubFile]:
    """Yield the files of the hub that are installed, by name."""
    for path in sorted(_folder().glob("*/*/*/*.gguf")):
        owner, repository, revision, file = path.relative_to(_folder()).parts
        revision = "" if revision == "main" else f"@{unquote(revision)}"
        with suppress(ConfigurationError):
            found = HubFile.parse(f"{owner}/{repository}:{unquote(file)}{revision}")
            if found.is_installed():
                yield found


def _folder() -> Path:
    return models_directory() / "hf"


def _delete(paths: list[Path]) -> None:
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _described(error: Exception) -> str:
    """Describe an error of the hub's client in one line, without the token."""
    from huggingface_hub import get_token

    message = " ".join(str(error)[:10_000].split())
    if token := get_token():
        message = message.replace(token, "[secret]")
    return f"{type(error).__name__}: {printable(message, 300).rstrip('. ')}"

"""Bytes on disk: a key-value store in SQLite, atomic files, fingerprints."""

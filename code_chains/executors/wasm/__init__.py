"""WebAssembly: CPython in wasmtime, for every system that has Python."""

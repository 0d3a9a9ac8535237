"""Numbers side by side: `python -m benchmarks.overhead`."""

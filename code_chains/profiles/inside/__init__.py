"""The program that profiles files, run by an executor: standard library only, and pandas where it is installed."""

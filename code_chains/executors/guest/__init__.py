"""What runs beside a program in any executor, on the standard library alone and any Python from 3.11.

It is copied or mounted where the program runs, as a package `guest` of its own: the host's chains never import it.
"""

"""Whether the value of a program is of the type and rounding that was asked for."""

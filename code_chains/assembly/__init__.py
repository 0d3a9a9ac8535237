"""The factory and what it puts together: the values that it takes, the assembled chain, and what surrounds a question."""

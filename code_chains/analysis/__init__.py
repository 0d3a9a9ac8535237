"""What source text tells without running it."""

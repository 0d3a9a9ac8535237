"""Whether an outcome is right: expectations and their test harness, comparison, grounding, repair feedback."""

"""Many questions, each answered once: questions, results file, runner, workers."""

"""What tells right outcomes from wrong ones, without a model; the stages that give verdicts are in `chains/`."""

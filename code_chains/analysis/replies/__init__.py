"""The program in a reply of a model, however it is written."""

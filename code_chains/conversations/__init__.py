"""Turns of conversations, their sessions, and their export."""

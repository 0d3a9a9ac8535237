"""LangChain callback handlers: usage, budget, deadlines, pricing, tracing, redaction."""

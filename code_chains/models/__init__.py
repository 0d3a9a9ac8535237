"""A name -> a chat model: resolution, the embedded models, their weights, sampling."""

from code_chains.models.resolve import default_model, for_code, resolve_model

__all__ = ["default_model", "for_code", "resolve_model"]

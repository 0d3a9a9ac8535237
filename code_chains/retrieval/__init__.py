"""From code to snippets to search: loaders, embeddings, index, store."""

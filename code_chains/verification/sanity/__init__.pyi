from .verdict import sanity_verdict as sanity_verdict

"""The HTTP contract as pydantic models, one module a subject."""

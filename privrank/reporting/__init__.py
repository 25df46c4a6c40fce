"""Reports of a user's own results, from templates."""

"""From sensitive data to a release: spend, then draw. The only package that opens encoded data."""

"""From a user's data frame to sensitive statistics; the only package that sees a user's frame."""

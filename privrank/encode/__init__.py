"""Convert data frames to statistics; no other subpackage reads user frames."""

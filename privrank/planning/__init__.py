"""What a fit will release and what a test can detect, from public numbers alone."""

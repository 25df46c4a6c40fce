"""What a fit will release: chosen from public numbers alone, before anything sensitive is read."""

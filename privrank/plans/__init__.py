"""What a fit will release, and its noise: from public numbers, before data are read."""

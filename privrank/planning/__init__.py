"""Power, sizes and effects of tests: simulated from public numbers alone."""

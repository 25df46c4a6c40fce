"""From the forms that people have data in to rankings and comparisons frames."""

"""A report on the example surveys: ``python -m privrank.reporting --out report``.

Each survey has one ledger. What was released is archived as JSON in ``releases/`` of the output
folder and read back from there, so that a second run spends nothing and writes the same report.
"""

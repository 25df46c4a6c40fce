"""The papers' own algorithms, as corrected; the public classes reach them by `method=`."""

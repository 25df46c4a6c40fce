"""Published algorithms, corrected; public classes offer them by `method=`."""

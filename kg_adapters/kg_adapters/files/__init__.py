"""Read files of every supported format as statements."""

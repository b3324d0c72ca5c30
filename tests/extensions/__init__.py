"""One small file for each thing that can be added, written outside the package, through public names only."""

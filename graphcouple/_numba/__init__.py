"""Every compiled loop: plain arrays and formulas in, plain arrays out."""

"""What everything else in `mechanisms` is made of: grids of exact integers, figures, dates, and measures of columns."""

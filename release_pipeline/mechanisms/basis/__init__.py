"""The parts that everything else in `mechanisms` uses: grids of exact integers, figures, dates, and measures of columns."""

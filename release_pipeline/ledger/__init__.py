"""State derived from the registry's events: releases, policies, populations, charges, and trials on the data."""

"""What Dagster shows. The only folder that imports it."""

-- The schema of one release in its population's vault.
CREATE SCHEMA IF NOT EXISTS {{workspace}};

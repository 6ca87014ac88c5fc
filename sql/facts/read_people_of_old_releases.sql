-- Likewise of a vault of an earlier version, which has no hash that is the same everywhere.
SELECT $population AS population, split_part(release, '/', 1) AS policy, release, person AS id, false AS known FROM main.exposed;

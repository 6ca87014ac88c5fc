-- The blocks of every release of a policy, whose names begin alike.
DELETE FROM main.swapped WHERE starts_with(release, $beginning);

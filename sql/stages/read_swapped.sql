SELECT person, block FROM main.swapped WHERE starts_with(release, $beginning);

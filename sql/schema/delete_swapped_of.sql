-- The blocks of a release whose room is emptied.
DELETE FROM main.swapped WHERE release = $release;

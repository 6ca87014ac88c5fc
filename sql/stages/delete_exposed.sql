DELETE FROM main.exposed WHERE release = $release;

DELETE FROM main.charged WHERE release = $release;

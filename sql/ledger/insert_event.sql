INSERT INTO events VALUES ($number, $body, $hash, $seal);

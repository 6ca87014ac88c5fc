-- The hashes of people of this release that are not known yet.
CREATE OR REPLACE TEMP TABLE new_identities AS
SELECT person, everywhere FROM people ANTI JOIN main.identities AS known USING (person, everywhere);

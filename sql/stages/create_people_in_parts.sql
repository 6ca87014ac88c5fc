-- The hashes of persons that come part by part, until all are put in order.
CREATE OR REPLACE TEMP TABLE people_in_parts (person BLOB, everywhere BLOB);

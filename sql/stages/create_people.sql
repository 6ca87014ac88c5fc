-- Who is in a release. Hashes do not compress, and trying to takes twenty times as long as writing them.
CREATE TABLE people (person BLOB USING COMPRESSION uncompressed, everywhere BLOB USING COMPRESSION uncompressed);

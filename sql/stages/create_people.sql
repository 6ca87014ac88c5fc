-- Who is in a release. Hashes do not compress, and to try it costs twenty times what writing them does.
CREATE TABLE people (person BLOB USING COMPRESSION uncompressed, everywhere BLOB USING COMPRESSION uncompressed);

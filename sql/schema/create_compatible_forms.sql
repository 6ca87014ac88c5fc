-- The compatible form of every letter that differs from it. $letters: one after the other; $forms: with U+001F between them.
SET VARIABLE compatible_forms = map(string_split($letters, ''), string_split($forms, chr(31)));

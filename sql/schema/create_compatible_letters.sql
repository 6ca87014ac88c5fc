-- The letters with a different compatible form, as a class of a regular expression.
SET VARIABLE compatible_letters = $letters;

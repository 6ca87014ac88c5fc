-- As in create_word_after_of_few, by the function that is registered for many rows.
CREATE OR REPLACE TEMP MACRO word_after(beginning, row_of) AS word_many_after(beginning, row_of);

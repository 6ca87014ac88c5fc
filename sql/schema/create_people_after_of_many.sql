-- As in create_people_after_of_few, by the function that is registered for many rows.
CREATE OR REPLACE TEMP MACRO people_after(inner_pad, outer_pad, everywhere_inner, everywhere_outer, entry) AS
    people_many_after(inner_pad, outer_pad, everywhere_inner, everywhere_outer, entry);

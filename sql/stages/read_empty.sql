-- Which of some records are empty slots, in source order.
SELECT {{empty}} AS value FROM raw WHERE rowid >= $first AND rowid < $beyond;

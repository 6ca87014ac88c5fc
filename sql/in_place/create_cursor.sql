-- Postgres: the result of a query, to be read part by part.
DECLARE {{cursor}} NO SCROLL CURSOR FOR {{query}};

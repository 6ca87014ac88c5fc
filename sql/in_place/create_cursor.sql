-- Of Postgres: what a query gives, to be read part by part.
DECLARE {{cursor}} NO SCROLL CURSOR FOR {{query}};

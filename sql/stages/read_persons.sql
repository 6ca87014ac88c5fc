-- Whose record each is, in bytes, for as long as they are hashed; of records without a person none.
SELECT encode(person) AS person
FROM (SELECT {{person}} AS person FROM delivered)
WHERE person IS NOT NULL;

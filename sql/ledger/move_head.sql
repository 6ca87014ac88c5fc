UPDATE head SET number = $number, hash = $hash WHERE number = $previous;

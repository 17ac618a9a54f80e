SELECT COUNT(*), MIN(c) >= 1 FROM (SELECT "UserID", "SearchPhrase", COUNT(*) AS c FROM hits GROUP BY "UserID", "SearchPhrase" LIMIT 10) AS t

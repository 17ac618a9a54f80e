SELECT user_id, min(timestamp) AS earliest, max(timestamp) AS latest, count(*) AS n FROM logs WHERE user_id < 1000
GROUP BY user_id HAVING count(*) > 5 ORDER BY n DESC, user_id LIMIT 50

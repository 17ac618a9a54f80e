SELECT user_id, min(timestamp) AS first, max(timestamp) AS last, count(*) AS n FROM logs WHERE user_id < 1000
GROUP BY user_id HAVING count(*) > 5 ORDER BY n DESC, user_id LIMIT 50

SELECT date_bin(INTERVAL '1 hour', timestamp, TIMESTAMP '1970-01-01') AS timestamp, count(DISTINCT user_id) AS users
FROM logs WHERE status = 200 GROUP BY 1 ORDER BY 1

SELECT date_bin(INTERVAL '5 minutes', timestamp, TIMESTAMP '1970-01-01') AS timestamp, count(*) AS n,
       count(*) FILTER (WHERE level = 'ERROR') AS errors
FROM logs GROUP BY 1 ORDER BY 1

SELECT CASE WHEN status >= 500 THEN 'server error' WHEN status >= 400 THEN 'client error' ELSE 'ok' END AS class,
       duration_ms > 500 AS slow, count(*) AS n
FROM logs GROUP BY 1, 2 ORDER BY 1, 2

SELECT split_part(path, '/', 3) AS part, count(*) AS n, avg(duration_ms) FROM logs
WHERE path ILIKE '/api/%' GROUP BY 1 ORDER BY n DESC, part

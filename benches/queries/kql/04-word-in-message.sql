SELECT service, level, count(*) AS n FROM logs WHERE regexp_like(message, '(^|[^[:alnum:]])timeout($|[^[:alnum:]])', 'i')
GROUP BY service, level ORDER BY n DESC, service, level LIMIT 20

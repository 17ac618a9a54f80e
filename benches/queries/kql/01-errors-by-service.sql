SELECT service, count(*) AS n FROM logs WHERE level = 'ERROR' GROUP BY service ORDER BY n DESC, service

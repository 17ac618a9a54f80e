SELECT service, status, avg(duration_ms), min(duration_ms), max(duration_ms), sum(bytes) FROM logs
GROUP BY service, status ORDER BY service, status

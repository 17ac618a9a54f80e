SELECT id, timestamp, service, duration_ms FROM logs
WHERE timestamp BETWEEN '2026-01-01T06:00:00Z' AND '2026-01-01T12:00:00Z' AND duration_ms > 900
ORDER BY duration_ms DESC, id LIMIT 100

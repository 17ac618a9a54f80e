SELECT o.team, sum(l.n) AS n
FROM (SELECT service, count(*) AS n FROM logs WHERE level IN ('ERROR', 'WARN') GROUP BY service) l
JOIN owners o ON o.service = l.service GROUP BY o.team ORDER BY n DESC, o.team

SELECT min(mc.note) AS note, min(t.title) AS title, min(t.production_year) AS year
FROM company_type AS ct, info_type AS it, movie_companies AS mc, movie_info_idx AS mi, title AS t
WHERE ct.kind = 'production companies' AND it.info = 'top 250 rank' AND mc.note NOT LIKE '%(as Metro%'
  AND mc.note LIKE '%(co-production)%' AND ct.id = mc.company_type_id AND t.id = mc.movie_id AND t.id = mi.movie_id
  AND mc.movie_id = mi.movie_id AND it.id = mi.info_type_id

SELECT min(t.title) AS title
FROM company_type AS ct, info_type AS it, movie_companies AS mc, movie_info AS mi, title AS t
WHERE ct.kind = 'production companies' AND mc.note LIKE '%(theatrical)%' AND mi.info IN ('Drama', 'Horror', 'German')
  AND t.production_year > 1990 AND t.id = mi.movie_id AND t.id = mc.movie_id AND mc.movie_id = mi.movie_id
  AND ct.id = mc.company_type_id AND it.id = mi.info_type_id

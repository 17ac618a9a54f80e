SELECT min(cn.name) AS company, min(lt.link) AS link, min(t.title) AS title
FROM company_name AS cn, company_type AS ct, keyword AS k, link_type AS lt, movie_companies AS mc, movie_keyword AS mk,
  movie_link AS ml, title AS t
WHERE cn.country_code <> '[pl]' AND (cn.name LIKE '%Film%' OR cn.name LIKE '%Warner%') AND ct.kind = 'production companies'
  AND k.keyword = 'sequel' AND lt.link LIKE '%follow%' AND mc.note = '' AND t.production_year BETWEEN 1950 AND 2013
  AND lt.id = ml.link_type_id AND ml.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id
  AND t.id = mc.movie_id AND mc.company_type_id = ct.id AND mc.company_id = cn.id AND ml.movie_id = mk.movie_id
  AND ml.movie_id = mc.movie_id AND mk.movie_id = mc.movie_id

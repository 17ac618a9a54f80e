SELECT min(mi.info) AS released, min(t.title) AS title
FROM company_name AS cn, company_type AS ct, info_type AS it1, keyword AS k, movie_companies AS mc, movie_info AS mi,
  movie_keyword AS mk, title AS t
WHERE cn.country_code = '[us]' AND it1.info = 'release dates' AND mc.note LIKE '%(worldwide)%' AND mi.info LIKE 'USA:% 20%'
  AND t.production_year > 2000 AND t.id = mi.movie_id AND t.id = mk.movie_id AND t.id = mc.movie_id
  AND mk.movie_id = mi.movie_id AND mk.movie_id = mc.movie_id AND mi.movie_id = mc.movie_id AND k.id = mk.keyword_id
  AND it1.id = mi.info_type_id AND cn.id = mc.company_id AND ct.id = mc.company_type_id

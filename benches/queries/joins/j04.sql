SELECT min(mi.info) AS rating, min(t.title) AS title
FROM info_type AS it, keyword AS k, movie_info_idx AS mi, movie_keyword AS mk, title AS t
WHERE it.info = 'rating' AND k.keyword LIKE '%sequel%' AND mi.info > '5.0' AND t.production_year > 2005
  AND t.id = mi.movie_id AND t.id = mk.movie_id AND mk.movie_id = mi.movie_id AND k.id = mk.keyword_id
  AND it.id = mi.info_type_id

SELECT min(mi_idx.info) AS rating, min(t.title) AS title
FROM info_type AS it1, info_type AS it2, keyword AS k, kind_type AS kt, movie_info AS mi, movie_info_idx AS mi_idx,
  movie_keyword AS mk, title AS t
WHERE it1.info = 'languages' AND it2.info = 'rating' AND k.keyword IN ('murder', 'blood', 'violence') AND kt.kind = 'movie'
  AND mi.info IN ('Swedish', 'Norwegian', 'German', 'Danish', 'English') AND mi_idx.info < '8.5' AND t.production_year > 2010
  AND kt.id = t.kind_id AND t.id = mi.movie_id AND t.id = mk.movie_id AND t.id = mi_idx.movie_id
  AND mk.movie_id = mi.movie_id AND mk.movie_id = mi_idx.movie_id AND mi.movie_id = mi_idx.movie_id
  AND k.id = mk.keyword_id AND it1.id = mi.info_type_id AND it2.id = mi_idx.info_type_id

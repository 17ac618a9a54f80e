SELECT min(lt.link) AS link, min(t1.title) AS first, min(t2.title) AS second
FROM keyword AS k, link_type AS lt, movie_keyword AS mk, movie_link AS ml, title AS t1, title AS t2
WHERE k.keyword = 'sequel' AND mk.keyword_id = k.id AND t1.id = mk.movie_id AND ml.movie_id = t1.id
  AND ml.linked_movie_id = t2.id AND lt.id = ml.link_type_id AND mk.movie_id = t1.id

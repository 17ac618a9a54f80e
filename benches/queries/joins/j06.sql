SELECT min(k.keyword) AS keyword, min(n.name) AS actor, min(t.title) AS title
FROM cast_info AS ci, keyword AS k, movie_keyword AS mk, name AS n, title AS t
WHERE k.keyword IN ('superhero', 'sequel', 'second-part', 'marvel-comics', 'based-on-novel', 'revenge', 'hero')
  AND n.name LIKE '%Tim%' AND t.production_year > 2000 AND k.id = mk.keyword_id AND t.id = mk.movie_id
  AND t.id = ci.movie_id AND ci.movie_id = mk.movie_id AND n.id = ci.person_id

SELECT min(an.name) AS pseudonym, min(t.title) AS title
FROM aka_name AS an, cast_info AS ci, company_name AS cn, movie_companies AS mc, name AS n, role_type AS rt, title AS t
WHERE ci.note = '(voice)' AND cn.country_code = '[jp]' AND mc.note LIKE '%(theatrical)%' AND n.name LIKE '%ol%'
  AND rt.role = 'actress' AND an.person_id = n.id AND n.id = ci.person_id AND ci.movie_id = t.id AND t.id = mc.movie_id
  AND mc.company_id = cn.id AND ci.role_id = rt.id AND an.person_id = ci.person_id AND ci.movie_id = mc.movie_id

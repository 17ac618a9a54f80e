SELECT * FROM hits WHERE "URL" LIKE '%google%' ORDER BY "EventTime", "WatchID" LIMIT 10

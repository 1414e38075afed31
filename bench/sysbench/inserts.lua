-- Statements of 1000 rows into a table of each session's own.
function thread_init()
   drv = sysbench.sql.driver(); con = drv:connect()
   id = 0
   con:query("DROP TABLE IF EXISTS ins" .. sysbench.tid)
   con:query("CREATE TABLE ins" .. sysbench.tid .. " (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)) ENGINE=InnoDB")
   c = sysbench.rand.string(string.rep("@", 119)); pad = sysbench.rand.string(string.rep("@", 59))
end
function event()
   local rows = {}
   for i = 1, 1000 do rows[i] = "(" .. sysbench.rand.uniform(1, 10000000) .. ",'" .. c .. "','" .. pad .. "')" end
   con:query("INSERT INTO ins" .. sysbench.tid .. " (k, c, pad) VALUES " .. table.concat(rows, ","))
end
function thread_done() con:disconnect() end

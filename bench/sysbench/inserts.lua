-- The published `inserts` workload: statements of 1000 rows, each session into a table of its own.
function thread_init()
   drv = sysbench.sql.driver(); con = drv:connect()
   i = 0
   table_name = "T" .. sysbench.tid
   con:query("DROP TABLE IF EXISTS " .. table_name)
   con:query("CREATE TABLE " .. table_name .. " (i INT PRIMARY KEY, j INT, INDEX jx (j)) ENGINE=InnoDB")
end
function event()
   local rows = {}
   for n = 1, 1000 do
      i = i + 1
      rows[n] = "(" .. i .. "," .. sysbench.rand.uniform(1, 10000000) .. ")"
   end
   con:query("INSERT INTO " .. table_name .. " VALUES " .. table.concat(rows, ","))
end
function thread_done() con:disconnect() end

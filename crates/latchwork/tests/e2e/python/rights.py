"""Walks statement x right on MariaDB and on Latchwork, and compares the outcome: rows, or the error with its text.

rights.py MARIADB_SOCKET LATCHWORK_SOCKET [EVERY]

For each grant, an account with just this grant runs each statement on both servers. With EVERY = 3 it is every third
grant. What differs and is not in KNOWN is printed, and the exit status is 1.
"""

import re
import sys

import pymysql

STATEMENTS = """\
SELECT 1
SELECT * FROM z.t
SELECT a FROM z.t
SELECT b FROM z.t WHERE a = 1
SELECT a FROM z.t WHERE c = 1
SELECT a FROM z.t ORDER BY b
SELECT a FROM z.t GROUP BY c, a
SELECT COUNT(*) FROM z.t
SELECT 1 FROM z.t
SELECT x.a FROM z.t x JOIN z.t y USING (a)
SELECT x.a FROM z.t x, z.u y WHERE x.a = y.a
SELECT a FROM (SELECT a, b FROM z.t) d
SELECT (SELECT MAX(b) FROM z.t)
SELECT a FROM z.t WHERE b IN (SELECT b FROM z.u)
SELECT a FROM z.t UNION SELECT a FROM z.u
SELECT a FROM z.t FOR UPDATE
SELECT * FROM z.nosuch
SELECT nosuch FROM z.t
SELECT * FROM nosuch.t
SELECT COUNT(*) * 0 FROM mysql.db
SELECT COUNT(*) * 0 FROM mysql.user
INSERT INTO z.t VALUES (10,1,1)
INSERT INTO z.t (a) VALUES (11)
INSERT INTO z.t (a, b) VALUES (12, 1)
INSERT INTO z.t SET a = 13
INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 5
INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = c + 1
INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = VALUES(a)
INSERT INTO z.t SELECT a + 20, b, b FROM z.u
INSERT INTO z.u SELECT a + 20, b FROM z.t
INSERT INTO z.nosuch VALUES (1)
REPLACE INTO z.t VALUES (1, 1, 1)
REPLACE INTO z.t (a) VALUES (1)
UPDATE z.t SET b = 7
UPDATE z.t SET b = 7 WHERE a = 1
UPDATE z.t SET b = a + 1
UPDATE z.t SET c = 7
UPDATE z.t SET b = 7 ORDER BY c
UPDATE z.t SET b = (SELECT MAX(b) FROM z.u)
UPDATE z.nosuch SET a = 1
DELETE FROM z.t
DELETE FROM z.t WHERE a = 1
DELETE FROM z.t WHERE b IN (SELECT b FROM z.u)
TRUNCATE z.t
TRUNCATE TABLE z.nosuch
CREATE TABLE z.n (a INT)
CREATE TABLE z.t (a INT)
CREATE TABLE IF NOT EXISTS z.t (a INT)
CREATE OR REPLACE TABLE z.t (a INT)
CREATE TABLE z.n LIKE z.t
CREATE TABLE z.n AS SELECT * FROM z.u
CREATE TABLE z.n AS SELECT a FROM z.t
CREATE DATABASE zz
CREATE DATABASE z
DROP DATABASE z
DROP DATABASE y
DROP DATABASE nosuch
DROP TABLE z.t
DROP TABLE z.t, z.u
DROP TABLE IF EXISTS z.nosuch
DROP TABLE z.nosuch
ALTER TABLE z.t ADD d INT
ALTER TABLE z.t RENAME TO z.n
ALTER TABLE z.nosuch ADD d INT
ALTER TABLE z.t ADD KEY (c)
CREATE INDEX kc ON z.t (c)
DROP INDEX kb ON z.t
RENAME TABLE z.t TO z.n
RENAME TABLE z.t TO y.n
LOCK TABLES z.t READ
LOCK TABLES z.t WRITE
USE z
USE y
USE nosuch
USE mysql
SHOW DATABASES
SHOW TABLES FROM z
SHOW TABLES FROM y
SHOW TABLES FROM nosuch
SHOW COLUMNS FROM z.t
SHOW FULL COLUMNS FROM z.t
SHOW COLUMNS FROM z.nosuch
DESCRIBE z.t
SHOW CREATE TABLE z.t
SHOW CREATE TABLE z.nosuch
SHOW CREATE DATABASE z
SHOW CREATE DATABASE y
SHOW INDEX FROM z.t
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('z', 'y') ORDER BY 1
SELECT COLUMN_NAME, PRIVILEGES FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'z' AND TABLE_NAME = 't' ORDER BY 1
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('z','y') ORDER BY 1
SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'z' ORDER BY 1
SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'z' ORDER BY TABLE_NAME
SELECT COUNT(*) FROM information_schema.INNODB_TRX
SELECT PRIVILEGE_TYPE, IS_GRANTABLE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE LIKE '%w%' ORDER BY 1
SELECT TABLE_SCHEMA, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE LIKE '%w%' ORDER BY 1, 2
SELECT TABLE_NAME, PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE LIKE '%w%' ORDER BY 1, 2
SELECT COLUMN_NAME, PRIVILEGE_TYPE FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE LIKE '%w%' ORDER BY 1, 2
SHOW GRANTS
SHOW GRANTS FOR w@localhost
SHOW GRANTS FOR o@localhost
SHOW CREATE USER
SHOW CREATE USER o@localhost
CHECK TABLE z.t
ANALYZE TABLE z.t
OPTIMIZE TABLE z.t
REPAIR TABLE z.t
CHECKSUM TABLE z.t
FLUSH TABLES
FLUSH PRIVILEGES
FLUSH STATUS
KILL QUERY %ROOTID%
KILL 999999
SET GLOBAL sort_buffer_size = 2097152
SET GLOBAL max_connections = 151
SET SESSION sort_buffer_size = 2097152
CREATE USER v@localhost
DROP USER IF EXISTS v@localhost
ALTER USER w@localhost IDENTIFIED BY 'n'
ALTER USER o@localhost IDENTIFIED BY 'n'
RENAME USER o@localhost TO o2@localhost
SET PASSWORD = PASSWORD('n')
SET PASSWORD FOR o@localhost = PASSWORD('n')
GRANT SELECT ON z.t TO o@localhost
GRANT SELECT ON z.* TO o@localhost
GRANT SELECT ON *.* TO o@localhost
GRANT SELECT (a) ON z.t TO o@localhost
GRANT ALL ON z.* TO o@localhost
REVOKE SELECT ON z.t FROM o@localhost
CREATE ROLE ro
DROP ROLE IF EXISTS ro2
SET ROLE NONE
LOAD DATA INFILE '/nosuch' INTO TABLE z.t
EXPLAIN SELECT * FROM z.t
EXPLAIN SELECT a FROM z.t
CACHE INDEX z.t IN default
LOAD INDEX INTO CACHE z.t
SELECT CURRENT_USER(), USER()
BEGIN
PREPARE p FROM 'SELECT * FROM z.t'
SET @x = (SELECT MAX(b) FROM z.t)
DO (SELECT MAX(b) FROM z.t)
"""

# The grants that the account has: rights, and on what.
TABLE_RIGHTS = "SELECT INSERT UPDATE DELETE CREATE DROP INDEX ALTER REFERENCES TRIGGER".split() + ["SHOW VIEW", "GRANT OPTION"]
DATABASE_RIGHTS = ["LOCK TABLES", "CREATE TEMPORARY TABLES", "EVENT", "EXECUTE"]
COLUMN_RIGHTS = [
    "SELECT (a)", "SELECT (a,b)", "INSERT (a)", "INSERT (a,b,c)", "UPDATE (b)", "REFERENCES (a)",
    "SELECT (a), UPDATE (b)", "SELECT (a,b), INSERT (a,b), UPDATE (b)",
]
GLOBAL_RIGHTS = [
    "RELOAD", "PROCESS", "FILE", "SUPER", "SHOW DATABASES", "CREATE USER", "CONNECTION ADMIN", "READ_ONLY ADMIN",
    "SHUTDOWN", "ALL",
]
SEVERAL = [
    ("SELECT, INSERT", "z.*"), ("SELECT, LOCK TABLES", "z.*"), ("CREATE, INSERT, ALTER, DROP", "z.*"), ("ALL", "z.*"),
    ("ALL", "z.t"), ("SELECT", "mysql.*"), ("INSERT", "mysql.*"), ("UPDATE", "mysql.*"), ("DELETE", "mysql.*"),
    ("SELECT, UPDATE, DELETE", "z.t"), ("SELECT", "`z%`.*"), ("SELECT, DELETE, INSERT", "z.*"),
]
GRANTS = (
    [None]
    + [(right, level) for right in TABLE_RIGHTS for level in ("*.*", "z.*", "z.t")]
    + [(right, level) for right in DATABASE_RIGHTS for level in ("*.*", "z.*")]
    + [(right, "z.t") for right in COLUMN_RIGHTS]
    + [(right, "*.*") for right in GLOBAL_RIGHTS]
    + SEVERAL
)

# What differs for reasons that have nothing to do with rights, and two oddities.
KNOWN = {
    "SELECT nosuch FROM z.t": "1054 says 'field list' here; with rights on columns MariaDB says 1143",
    "SELECT * FROM nosuch.t": "1049 here, 1146 in MariaDB",
    "SHOW INDEX FROM z.t": "the number of distinct keys is not known here before ANALYZE TABLE",
    "INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 5": "MariaDB wants UPDATE on inserted columns",
    "INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = c + 1": "the same",
    "INSERT INTO z.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = VALUES(a)": "the same",
}

# What a statement may leave behind is made anew afterwards.
OF_TABLES = ("INSERT", "REPLACE", "UPDATE", "DELETE", "TRUNCATE", "CREATE", "DROP", "ALTER", "RENAME")
OF_ACCOUNTS = ("CREATE USER", "DROP USER", "ALTER USER", "RENAME USER", "SET PASS", "GRANT", "REVOKE", "CREATE ROLE")
OF_SESSIONS = ("USE", "LOCK", "BEGIN", "SET", "PREPARE")
TABLES = """\
DROP DATABASE IF EXISTS zz
DROP DATABASE IF EXISTS z
CREATE DATABASE z CHARACTER SET utf8mb4
CREATE TABLE z.t (a INT PRIMARY KEY, b INT, c INT, KEY kb (b))
CREATE TABLE z.u (a INT PRIMARY KEY, b INT)
INSERT INTO z.t VALUES (1, 2, 3), (2, 3, 4)
INSERT INTO z.u VALUES (1, 2)
DROP DATABASE IF EXISTS y
CREATE DATABASE y CHARACTER SET utf8mb4
CREATE TABLE y.w (a INT)
"""
ACCOUNTS = """\
DROP USER IF EXISTS w@localhost, o@localhost, o2@localhost, v@localhost
DROP ROLE IF EXISTS ro
CREATE USER w@localhost IDENTIFIED BY 'p'
CREATE USER o@localhost
"""


class Server:
    def __init__(self, socket):
        self.socket = socket
        self.root = pymysql.connect(unix_socket=socket, user="root", autocommit=True)
        self.client = None

    def prepare(self, script):
        for statement in script.splitlines():
            with self.root.cursor() as cursor:
                cursor.execute(statement)

    def leave(self):
        if self.client:
            self.client.close()
        self.client = None

    def run(self, statement):
        """The outcome of a statement of the account's: what to compare."""
        if not self.client:
            self.client = pymysql.connect(unix_socket=self.socket, user="w", password="p", autocommit=True)
        statement = statement.replace("%ROOTID%", str(self.root.thread_id()))
        try:
            with self.client.cursor() as cursor:
                cursor.execute(statement)
                rows = cursor.fetchall()
        except pymysql.err.MySQLError as error:
            text = str(error.args).replace("MariaDB", "X").replace("Latchwork", "X")
            return re.sub(r"thread \d+", "thread N", text)
        finally:
            if statement.startswith(OF_SESSIONS):
                self.leave()
        if statement == "SHOW DATABASES":
            rows = tuple(row for row in rows if row[0] in ("z", "y", "mysql", "zz", "information_schema"))
        is_compared = statement.startswith(("SHOW", "DESC", "SELECT"))
        return str(rows).replace("InnoDB", "X").replace("Latchwork", "X") if is_compared else "done"


def main():
    judge, server = Server(sys.argv[1]), Server(sys.argv[2])
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    pairs, found = 0, 0
    for grant in GRANTS[::every]:
        accounts = ACCOUNTS + (f"GRANT {grant[0]} ON {grant[1]} TO w@localhost\n" if grant else "")
        for each in (judge, server):
            each.prepare(TABLES + accounts)
        for statement in STATEMENTS.splitlines():
            expected, got = judge.run(statement), server.run(statement)
            pairs += 1
            if expected != got and statement not in KNOWN:
                found += 1
                print(f"with {grant}: {statement}\n  MariaDB:   {expected}\n  Latchwork: {got}")
            if "done" in (expected, got) and statement.startswith(OF_TABLES + OF_ACCOUNTS):
                for each in (judge, server):
                    each.prepare(TABLES)
                    if statement.startswith(OF_ACCOUNTS):
                        each.leave()
                        each.prepare(accounts)
        for each in (judge, server):
            each.leave()
    print(f"{pairs} pairs of a statement and a grant, {found} differ")
    return 1 if found else 0


sys.exit(main())

"""What binds accounts beside their rights: limits of an hour, expired passwords, init_connect, read_only.

Prints a line for each statement, so that two servers can be compared.
"""

import re
import sys

import pymysql
from pymysql.constants import CLIENT

CAN_CHANGE = 1 << 22
socket = sys.argv[1]


def shown(error):
    code, text = error.args
    return f"ERROR {code}: {text}"


def connect(user, password="secret", flags=0):
    return pymysql.connect(
        unix_socket=socket, user=user, password=password, autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS | flags,
    )


def run(connection, statement):
    try:
        with connection.cursor() as cursor:
            affected = cursor.execute(statement)
            rows = [cursor.fetchall()]
            while cursor.nextset():
                rows.append(cursor.fetchall())
            print(f"{statement}: {affected} {rows}")
    except pymysql.Error as error:
        print(f"{statement}: {re.sub('connection [0-9]+', 'connection N', shown(error))}")


def session(title, user, statements, password="secret", flags=0):
    print(f"-- {title}")
    try:
        connection = connect(user, password, flags)
    except pymysql.Error as error:
        print(shown(error))
        return
    for statement in statements:
        run(connection, statement)
    try:
        connection.close()
    except pymysql.Error as error:
        print(shown(error))


root = pymysql.connect(unix_socket=socket, user="root", autocommit=True)


def admin(*statements):
    for statement in statements:
        with root.cursor() as cursor:
            cursor.execute(statement)


admin(
    "CREATE DATABASE bounds",
    "CREATE TABLE bounds.t (a INT)",
    "INSERT INTO bounds.t VALUES (1)",
    "CREATE USER few@localhost IDENTIFIED BY 'secret' WITH MAX_QUERIES_PER_HOUR 9 MAX_UPDATES_PER_HOUR 2",
    "CREATE USER brief@localhost IDENTIFIED BY 'secret' WITH MAX_STATEMENT_TIME 2.5",
    "CREATE USER once@localhost IDENTIFIED BY 'secret' WITH MAX_CONNECTIONS_PER_HOUR 2",
    "CREATE USER alone@localhost IDENTIFIED BY 'secret' WITH MAX_USER_CONNECTIONS 1",
    "CREATE USER old@localhost IDENTIFIED BY 'secret' PASSWORD EXPIRE",
    "CREATE USER plain@localhost IDENTIFIED BY 'secret'",
    "CREATE USER super@localhost IDENTIFIED BY 'secret'",
    "GRANT ALL ON *.* TO super@localhost",
    "REVOKE READ_ONLY ADMIN ON *.* FROM super@localhost",
)
for user in ["few", "brief", "once", "old", "plain"]:
    admin(f"GRANT ALL ON bounds.* TO {user}@localhost")

# PyMySQL itself sends SET AUTOCOMMIT.
updates = ["INSERT INTO bounds.t VALUES (2)", "UPDATE bounds.t SET a = 3; SELECT 1; DELETE FROM bounds.t WHERE a = 9"]
session("limits of an hour", "few", ["SELECT 1", *updates, "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 5"])
session("the same hour, another connection", "few", ["SELECT 1"])
admin("FLUSH USER_RESOURCES")
session("after FLUSH USER_RESOURCES", "few", ["SELECT 1", *updates])
session("time of statements", "brief", ["SELECT @@max_statement_time"])
for attempt in range(3):
    session("connections of an hour", "once", ["SELECT 1"])
first = connect("alone")
session("a second connection", "alone", ["SELECT 1"])
first.close()

bound = ["SELECT 1", "USE bounds", "SET @a = 1", "INSERT INTO bounds.t VALUES (7)", "DO 1"]
session("an expired password", "old", bound)
admin("SET GLOBAL disconnect_on_expired_password = ON")
session("an expired password of an old client", "old", bound)
session("of a new one", "old", [*bound[:2], "SET PASSWORD = PASSWORD('fresh')", *bound[:2]], flags=CAN_CHANGE)
session("with the new password", "old", ["SELECT 1"], password="fresh")
admin("ALTER USER old@localhost PASSWORD EXPIRE INTERVAL 1 DAY", "SET GLOBAL disconnect_on_expired_password = OFF")
session("a password of today", "old", ["SELECT 1"], password="fresh")

admin("SET GLOBAL init_connect = 'SET @given = \\'yes\\'; SET @@sql_mode = \\'ANSI\\''")
session("init_connect", "plain", ["SELECT @given, @@sql_mode"])
session("init_connect of an administrator", "super", ["SELECT @given"])
admin("SET GLOBAL init_connect = 'SELECT 1; SELECT * FROM bounds.nothing'")
print("-- an init_connect that fails")
try:
    broken = connect("plain")
    run(broken, "SELECT 1")
except pymysql.Error as error:
    print(error.args[0])
admin("SET GLOBAL init_connect = ''")

admin("SET GLOBAL read_only = ON", "CREATE TABLE bounds.u (a INT)", "INSERT INTO bounds.u VALUES (1)")
changes = [
    "INSERT INTO bounds.t VALUES (2)",
    "REPLACE INTO bounds.t VALUES (2)",
    "UPDATE bounds.t SET a = 1 WHERE 0",
    "DELETE FROM bounds.t",
    "SELECT a FROM bounds.u FOR UPDATE",
    "SELECT a FROM bounds.u LOCK IN SHARE MODE",
    "SELECT a FROM bounds.u",
    "CREATE TABLE bounds.v (a INT)",
    "DROP TABLE bounds.nothing",
    "ALTER TABLE bounds.t ADD b INT",
    "RENAME TABLE bounds.t TO bounds.w",
    "TRUNCATE bounds.t",
    "CREATE INDEX i ON bounds.t (a)",
    "LOAD DATA INFILE '/nothing' INTO TABLE bounds.t",
    "LOCK TABLES bounds.t WRITE",
    "LOCK TABLES bounds.t READ",
    "UNLOCK TABLES",
    "SET PASSWORD = PASSWORD('secret')",
    "SET @a = 1",
    "PREPARE p FROM 'INSERT INTO bounds.t VALUES (1)'",
    "EXECUTE p",
    "BEGIN",
    "COMMIT",
    "SHOW TABLES FROM bounds",
    "SET GLOBAL read_only = OFF",
]
session("read_only", "plain", changes)
session("read_only and SUPER", "super", [*changes, "CREATE USER other", "DROP USER nobody", "CREATE DATABASE other"])
admin("SET GLOBAL read_only = OFF", "DROP DATABASE bounds")
for user in ["few", "brief", "once", "alone", "old", "plain", "super"]:
    admin(f"DROP USER {user}@localhost")

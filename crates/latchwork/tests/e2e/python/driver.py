"""PyMySQL against the server whose socket is the first argument: every type there and back, and the errors."""

import datetime
import decimal
import sys
import threading

import pymysql


def connect(**options):
    return pymysql.connect(
        unix_socket=sys.argv[1], user="root", charset="utf8mb4", autocommit=True, **options
    )


connection = connect()
cursor = connection.cursor()
cursor.execute("CREATE DATABASE py")
connection.select_db("py")
cursor.execute(
    "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, big BIGINT UNSIGNED, price DECIMAL(20,4),"
    " ratio DOUBLE, name VARCHAR(50), raw VARBINARY(50), note TEXT, day DATE, at DATETIME(6), span TIME)"
)
row = (
    18446744073709551615,
    decimal.Decimal("12345.6789"),
    0.1,
    "it's \"é\" 日本 😀 \\ %",
    bytes(range(40)),
    "line\nline\ttab",
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 123456),
    datetime.timedelta(hours=100, minutes=5),
)
columns = "big, price, ratio, name, raw, note, day, at, span"
marks = ", ".join(["%s"] * len(row))
assert cursor.execute(f"INSERT INTO t ({columns}) VALUES ({marks})", row) == 1
assert cursor.lastrowid == 1
cursor.execute(f"SELECT {columns} FROM t")
assert cursor.fetchone() == row, "the row came back changed"
cursor.execute("SELECT %s, %s, %s", (None, 5, "x"))
assert cursor.fetchone() == (None, 5, "x")
cursor.executemany("INSERT INTO t (name) VALUES (%s)", [(f"name {n}",) for n in range(500)])
assert cursor.rowcount == 500
cursor.execute("SELECT COUNT(*), MAX(id) FROM t")
assert cursor.fetchone() == (501, 501)
names = [column[0] for column in cursor.description]
assert names == ["COUNT(*)", "MAX(id)"], names
assert cursor.execute("UPDATE t SET name = 'same' WHERE id IN (2, 3, 4)") == 3
assert cursor.execute("UPDATE t SET name = 'same' WHERE id IN (2, 3, 4)") == 0
assert cursor.execute("DELETE FROM t WHERE id > %s", (100,)) == 401

for statement, code in [
    ("SELECT * FROM nosuch", 1146),
    ("SELECT nosuch FROM t", 1054),
    ("INSERT INTO t (id) VALUES (1)", 1062),
    ("SELEC", 1064),
    ("CREATE TABLE t (id INT)", 1050),
    ("USE nosuch", 1049),
]:
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        assert error.args[0] == code, (statement, error)
    else:
        raise AssertionError(f"{statement} went well")

dictionary = connect(database="py", cursorclass=pymysql.cursors.DictCursor).cursor()
dictionary.execute("SELECT id, name FROM t WHERE id = 2")
assert dictionary.fetchone() == {"id": 2, "name": "same"}
streaming = connect(database="py", cursorclass=pymysql.cursors.SSCursor).cursor()
streaming.execute("SELECT id FROM t ORDER BY id")
assert [line[0] for line in streaming] == list(range(1, 101))

found_rows = connect(database="py", client_flag=pymysql.constants.CLIENT.FOUND_ROWS).cursor()
assert found_rows.execute("UPDATE t SET name = 'same' WHERE id IN (2, 3, 4)") == 3

several = connect(database="py", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS).cursor()
several.execute("SELECT 1; SELECT 2, 3; UPDATE t SET name = 'x' WHERE id = 9")
assert several.fetchall() == ((1,),)
assert several.nextset() and several.fetchall() == ((2, 3),)
assert several.nextset() and several.rowcount == 1
assert not several.nextset()

connection.ping()
wrong = []


def count_up():
    own = connect(database="py")
    try:
        with own.cursor() as counter:
            for _ in range(200):
                counter.execute("UPDATE t SET big = IFNULL(big, 0) + 1 WHERE id = 50")
    except Exception as error:
        wrong.append(error)
    own.close()


threads = [threading.Thread(target=count_up) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong, wrong
cursor.execute("SELECT big FROM t WHERE id = 50")
assert cursor.fetchone() == (1600,)
cursor.execute("DROP DATABASE py")
print("ok")

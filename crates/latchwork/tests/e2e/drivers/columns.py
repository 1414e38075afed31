"""Reads the tables types.c0, types.c1 ... through PyMySQL: SOCKET COUNT."""

import sys

import pymysql

connection = pymysql.connect(unix_socket=sys.argv[1], user="root", database="types", charset="utf8mb4")
with connection.cursor() as cursor:
    for table in range(int(sys.argv[2])):
        cursor.execute(f"SELECT * FROM c{table}")
        cursor.fetchall()
connection.close()

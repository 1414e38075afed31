/* Reads the tables types.c0, types.c1 ... through MariaDB's client library, as text and prepared: SOCKET COUNT. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    MYSQL *connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (count != 3 || !mysql_real_connect(connection, NULL, "root", "", "types", 0, arguments[1], 0))
        return 1;
    for (int table = 0; table < atoi(arguments[2]); table++) {
        char sql[64];
        int length = snprintf(sql, sizeof sql, "SELECT * FROM c%d", table);
        if (mysql_query(connection, sql))
            return 2;
        mysql_free_result(mysql_store_result(connection));
        MYSQL_STMT *statement = mysql_stmt_init(connection);
        if (mysql_stmt_prepare(statement, sql, length) || mysql_stmt_execute(statement) ||
            mysql_stmt_store_result(statement))
            return 3;
        mysql_stmt_close(statement);
    }
    mysql_close(connection);
    return 0;
}

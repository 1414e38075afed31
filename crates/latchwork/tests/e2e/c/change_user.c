/* COM_CHANGE_USER through MariaDB's client library, on the server whose socket is the argument. */

#include <mysql.h>
#include <stdio.h>

static void change(MYSQL *connection, const char *user, const char *password, const char *database)
{
    int failed = mysql_change_user(connection, user, password, database);
    printf("%s: %u", user, failed ? mysql_errno(connection) : 0);
    if (!failed && !mysql_query(connection, "SELECT CURRENT_USER(), DATABASE()")) {
        MYSQL_RES *result = mysql_store_result(connection);
        MYSQL_ROW row = mysql_fetch_row(result);
        printf(" %s %s", row[0], row[1] ? row[1] : "(none)");
        mysql_free_result(result);
    }
    printf("\n");
}

int main(int count, char **arguments)
{
    for (int compresses = 0; compresses < 2; compresses++) {
        MYSQL *connection = mysql_init(NULL);
        if (compresses)
            mysql_options(connection, MYSQL_OPT_COMPRESS, NULL);
        if (count != 2 || !mysql_real_connect(connection, NULL, "root", "", NULL, 0, arguments[1], 0))
            return 1;
        if (!compresses && (mysql_query(connection, "CREATE DATABASE d") ||
                            mysql_query(connection, "CREATE USER ann IDENTIFIED BY 'secret'") ||
                            mysql_query(connection, "CREATE USER bob") ||
                            mysql_query(connection, "GRANT ALL ON d.* TO ann, bob")))
            return 2;
        change(connection, "ann", "secret", "d");
        change(connection, "bob", "", NULL);
        change(connection, "ann", "secret", NULL);
        change(connection, "ann", "secret", "d");
        change(connection, "ann", "wrong", NULL);
        mysql_close(connection);
    }
    return 0;
}

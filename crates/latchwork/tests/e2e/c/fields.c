/* COM_FIELD_LIST through MariaDB's client library, on the server whose socket is the argument: prints columns and defaults. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

static MYSQL *connection;

static void run(const char *sql)
{
    if (mysql_query(connection, sql)) {
        fprintf(stderr, "%s: %s\n", sql, mysql_error(connection));
        exit(1);
    }
}

static void list(const char *table, const char *pattern)
{
    printf("%s like %s\n", table, pattern ? pattern : "everything");
    MYSQL_RES *result = mysql_list_fields(connection, table, pattern);
    if (!result) {
        printf("  error %u: %s\n", mysql_errno(connection), mysql_error(connection));
        return;
    }
    MYSQL_FIELD *field;
    while ((field = mysql_fetch_field(result)))
        printf("  %s.%s type %d length %lu flags %u decimals %u charset %u default %s\n", field->table, field->name,
            field->type, field->length, field->flags, field->decimals,
            field->charsetnr, field->def ? field->def : "(none)");
    mysql_free_result(result);
}

int main(int count, char **arguments)
{
    connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (count != 2 || !mysql_real_connect(connection, NULL, "root", "", NULL, 0, arguments[1], 0))
        return 1;
    list("t", NULL);
    run("CREATE DATABASE c");
    run("USE c");
    run("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, name VARCHAR(20) DEFAULT 'grün', other CHAR(5) NOT NULL, "
        "small TINYINT UNSIGNED DEFAULT 7, price DECIMAL(8,2) NOT NULL DEFAULT 1.5, ratio DOUBLE DEFAULT 0.25, "
        "part FLOAT NOT NULL, day DATE DEFAULT '2020-02-29', moment DATETIME DEFAULT CURRENT_TIMESTAMP, "
        "changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, hour TIME DEFAULT '10:00:00', since YEAR DEFAULT 1999, "
        "text TEXT, bytes BLOB NOT NULL, fixed BINARY(3) DEFAULT 'abc', PRIMARY KEY (id), KEY (name)) "
        "DEFAULT CHARSET utf8mb4");
    run("CREATE TABLE `odd ``name` (a INT)");
    list("t", NULL);
    list("t", "%");
    list("t", "p%");
    list("t", "_A_");
    list("t", "nothing");
    list("odd `name", NULL);
    list("nowhere", NULL);
    run("DROP DATABASE c");
    mysql_close(connection);
    return 0;
}

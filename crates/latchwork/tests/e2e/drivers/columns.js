// Reads the tables types.c0, types.c1 ... through mysqljs: SOCKET COUNT.
const mysql = require('mysql');
const connection = mysql.createConnection({ socketPath: process.argv[2], user: 'root', database: 'types' });
for (let table = 0; table < Number(process.argv[3]); table++) {
    connection.query(`SELECT * FROM c${table}`, (error) => {
        if (error) throw error;
    });
}
connection.end();

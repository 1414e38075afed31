<?php
// Reads the tables types.c0, types.c1 ... through mysqlnd, as text and prepared: SOCKET COUNT.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$connection = new mysqli(null, 'root', '', 'types', 0, $argv[1]);
for ($table = 0; $table < $argv[2]; $table++) {
    $connection->query("SELECT * FROM c$table")->fetch_all();
    $statement = $connection->prepare("SELECT * FROM c$table");
    $statement->execute();
    $statement->get_result()->fetch_all();
    $statement->close();
}
$connection->close();

-- Each character's weight, as far as order and equality show it.
CREATE TABLE digits (d INT PRIMARY KEY);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
CREATE TABLE points (n INT PRIMARY KEY, c VARCHAR(2) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin);
INSERT INTO points SELECT a.d * 4096 + b.d * 256 + c.d * 16 + d.d, CONVERT(CHAR(224 + a.d, 128 + b.d * 4 + c.d DIV 4, 128 + c.d % 4 * 16 + d.d) USING utf8mb4) FROM digits a, digits b, digits c, digits d WHERE a.d * 16 + b.d BETWEEN 8 AND 215;
INSERT INTO points SELECT a.d * 64 + b.d * 16 + c.d, CONVERT(CHAR(192 + a.d, 128 + b.d * 16 + c.d) USING utf8mb4) FROM (SELECT x.d * 16 + y.d AS d FROM digits x, digits y WHERE x.d < 2) a, digits b, digits c WHERE a.d >= 2 AND b.d < 4;
SELECT COUNT(*), COUNT(DISTINCT c), SUM(CRC32(c)), MIN(n), MAX(n) FROM points;
SET group_concat_max_len = 4000000;
SELECT CRC32(GROUP_CONCAT(n ORDER BY c COLLATE utf8mb4_unicode_ci, n)) FROM points;
SELECT CRC32(GROUP_CONCAT(n ORDER BY c COLLATE utf8mb4_unicode_520_ci, n)) FROM points;
SELECT CRC32(GROUP_CONCAT(n ORDER BY c COLLATE utf8mb4_uca1400_as_cs, n)) FROM points;
SELECT CRC32(GROUP_CONCAT(n ORDER BY c COLLATE utf8mb4_general_ci, n)) FROM points;
SELECT COUNT(DISTINCT c COLLATE utf8mb4_unicode_ci), COUNT(DISTINCT c COLLATE utf8mb4_unicode_520_ci), COUNT(DISTINCT c COLLATE uca1400_ai_ci), COUNT(DISTINCT c COLLATE uca1400_as_ci), COUNT(DISTINCT c COLLATE uca1400_ai_cs), COUNT(DISTINCT c COLLATE utf8mb4_general_ci) FROM points;
DROP TABLE points, digits;

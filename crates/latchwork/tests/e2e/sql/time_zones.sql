-- CONVERT_TZ by offsets. MariaDB knows zones by name only when its tables are filled: a unit test has those.
select convert_tz('2020-07-01','+00:00','-03:30'), convert_tz('2020-01-01 10:00:00','+13:00','-12:00');
select convert_tz('2020-07-01 10:00:00.123','-01:00','+05:45'), convert_tz(20200101123456,'SYSTEM','+01:00');
select convert_tz('1970-01-01 00:00:00','+00:00','+01:00'), convert_tz('1970-01-01 00:00:01','+00:00','+01:00');
select convert_tz('2038-01-19 03:14:07','+00:00','+01:00'), convert_tz('2038-01-19 03:14:08','+00:00','+01:00');
select convert_tz(null,'+00:00','+00:00'), convert_tz('2020-01-01','nope','+00:00'), convert_tz('2020-01-01','+00:00','');
select convert_tz('x','+00:00','+00:00'), convert_tz('0000-00-00','+00:00','+01:00'), convert_tz('2020-00-01','+00:00','+01:00');
select convert_tz('2020-01-01 10:00:00','+15:00','+00:00'), convert_tz('2020-01-01', '+00:00', null), convert_tz('2200-01-01','+00:00','+01:00');

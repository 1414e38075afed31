-- INVISIBLE columns.
create table i1 (a int, b int invisible, c int invisible default 5, d int);
show create table i1; show columns from i1;
insert into i1 values (1,2); insert into i1 (a,b,c,d) values (1,2,3,4); select * from i1; select a,b,c,d from i1; select i1.* from i1;
select column_name, extra from information_schema.columns where table_schema='defs' and table_name='i1';
insert into i1 select * from i1; select a,b,c,d from i1;
create table i2 (a int invisible);
create table i2 (a int invisible not null, b int);
create table i2 (a int invisible not null default 4, b int as (a) invisible);
create table i2 (a int invisible not null default 4, b int as (a) invisible, c int);
show create table i2;
alter table i2 modify a int; show create table i2;
alter table i2 modify c int invisible;
create table i3 (a int invisible auto_increment primary key, b int); insert into i3 values (5); select a,b from i3; select * from i3;
create table i4 as select * from i3; show create table i4; create table i5 like i3; show create table i5;
select * from (select * from i3) x; select * from i3 natural join i5; select count(*) from i3 join i3 b using (a);
alter table i1 add e int invisible default 9, modify d int invisible; show create table i1; select * from i1; insert into i1 values (77); select a, b, c, d, e from i1 order by a, b; alter table i1 modify d int; show columns from i1;
insert into i1 values (1, 2, 3, 4); insert into i1 () values (); insert into i1 select 8, 9; update i1 set b = 3 where b is null; select a, b from i1 order by a, b; select t.*, t.b from i1 t where c = 5 order by a; select b, count(*) from i1 group by b order by b; create table i9 like i1; show create table i9; alter table i9 rename column b to bb; show create table i9;
create table i6 (a int, b int default 5 invisible comment 'c' unique); show create table i6; create table i7 (a int invisible primary key, b int); create table i8 (a timestamp default current_timestamp on update current_timestamp invisible, b int); show create table i8; show columns from i8; select extra from information_schema.columns where table_schema = database() and table_name in ('i2', 'i3', 'i8') order by table_name, ordinal_position;

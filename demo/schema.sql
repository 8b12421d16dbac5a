-- What orders keeps. For the demo and for docker-compose.yml.
create table orders (id int primary key, item text not null, customer text not null);
insert into orders select n, 'item-' || n % 10, 'customer-' || n from generate_series(1, 100) n;
create table customers (name text primary key);
insert into customers select customer from orders;

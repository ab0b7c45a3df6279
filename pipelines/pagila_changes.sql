-- Changes of the demo: a new category, films and actors changed, a film's cast deleted.
INSERT INTO public.category (name) VALUES ('Slow Cinema');
UPDATE public.film SET release_year = 2020, rental_rate = 1.99 WHERE film_id = 1;
UPDATE public.film SET rental_duration = 4 WHERE film_id = 1;
UPDATE public.film_category SET category_id = (SELECT category_id FROM public.category WHERE name = 'Slow Cinema') WHERE film_id = 3;
UPDATE public.actor SET first_name = 'GRETA', last_name = 'GARBO' WHERE actor_id = 6;
UPDATE public.address SET address = '12 Somewhere Road', district = 'Nowhere' WHERE address_id = 100;
UPDATE public.inventory SET store_id = 2 WHERE inventory_id = 1;
DELETE FROM public.film_actor WHERE film_id = 375;

-- Changes of the demo: new rows, a row changed five times, a row that moves between partitions.
INSERT INTO artists (artist_id, name, bio) VALUES (9000001, 'A. Newcomer', '(Finnish, born 1970)');
INSERT INTO artworks (object_id, artist_id, title, date) VALUES (9000002, '9000001', 'Untitled', '2020');
UPDATE artworks SET date = '1988' WHERE object_id = 3;
UPDATE artworks SET date = 'c. 1988' WHERE object_id = 3;
UPDATE artworks SET medium = 'Paint on print' WHERE object_id = 3;
UPDATE artworks SET curator_approved = 'N' WHERE object_id = 3;
UPDATE artworks SET date = '1987' WHERE object_id = 3;
UPDATE artists SET nationality = 'Danish' WHERE artist_id = 27;
UPDATE artists SET nationality = NULL WHERE artist_id = 28;
DELETE FROM artworks WHERE object_id = 2;
DELETE FROM artists WHERE artist_id = 26;

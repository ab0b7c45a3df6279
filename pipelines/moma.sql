-- Tables for the Museum of Modern Art's collection. Its artists have no nationality of their own:
-- it is the first word of their biography.
CREATE TABLE artists (
    artist_id bigint PRIMARY KEY,
    name text,
    bio text,
    nationality text
);
CREATE TABLE artworks (
    object_id bigint PRIMARY KEY,
    artist_id text,
    title text,
    date text,
    medium text,
    dimensions text,
    classification text,
    department text,
    date_acquired text,
    credit_line text,
    moma_number text,
    curator_approved text
);
CREATE FUNCTION nationality_of(bio text) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN substring(bio FROM '^\(([^,)]+)');
CREATE FUNCTION set_nationality() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.nationality := coalesce(NEW.nationality, public.nationality_of(NEW.bio));
    RETURN NEW;
END $$;
CREATE TRIGGER nationality BEFORE INSERT ON artists
    FOR EACH ROW EXECUTE FUNCTION set_nationality();

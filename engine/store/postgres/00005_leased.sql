-- +goose Up

-- The trigger of tables that only the holder of a lease may write. Until the transaction ends, nobody else can take that. The setting
-- daycared.daemon of the connection says which daemon writes.
-- +goose StatementBegin
CREATE FUNCTION leased() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM leases WHERE name = TG_ARGV[0] AND holder = current_setting('daycared.daemon', TRUE) FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this daemon does not have the lease % any more', TG_ARGV[0];
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

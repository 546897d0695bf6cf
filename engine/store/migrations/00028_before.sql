-- +goose Up

-- How often people have allowed an action, which the card of the next request for it says.
CREATE INDEX requests_allowed ON requests (caller, action, decided_at) WHERE state = 'approved' AND decided_via <> 'grant';

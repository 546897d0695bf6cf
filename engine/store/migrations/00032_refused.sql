-- +goose Up

-- What people denied, or did not answer in time: an agent of which that is too much is muted.
CREATE INDEX requests_refused ON requests (caller, decided_at) WHERE state IN ('denied', 'expired') OR timed_out;

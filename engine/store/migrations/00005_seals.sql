-- +goose Up

-- Rows that open a gate carry a MAC under the audit key, and so do the entries of the audit. It is empty where there is
-- none: of rows from before the key until the next start, and of what was closed for good.
ALTER TABLE meta ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE requests ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE grants ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE tokens ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE pairings ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE audit ADD COLUMN mac BLOB NOT NULL DEFAULT x'';

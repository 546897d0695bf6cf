package models

import "log/slog"

// Key is what a provider knows us by. It does not print. Empty: none is sent.
type Key string

// String hides the key.
func (Key) String() string { return "‹key›" }

// GoString hides the key.
func (k Key) GoString() string { return k.String() }

// LogValue hides the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText hides the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Price is what a million tokens cost, in millionths of a currency.
type Price struct {
	Read, Written int64
}

// Cost is what so many tokens cost, in millionths of the currency, rounded up.
func (p Price) Cost(u Usage) int64 {
	const million = 1_000_000
	return (u.Read*p.Read + u.Written*p.Written + million - 1) / million
}

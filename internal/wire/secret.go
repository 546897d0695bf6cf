package wire

import "log/slog"

// Secret is a key or a token. Printing, logging or encoding it shows a placeholder; a conversion to string gives its text.
type Secret string

func (Secret) String() string { return "‹key›" }

// GoString returns the placeholder.
func (s Secret) GoString() string { return s.String() }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

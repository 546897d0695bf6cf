package permissions

import "time"

// Pairing is an account of a channel that proved to be a person's, so that no configuration has to name it. A person has
// at most one on each channel, and an account is one person's.
type Pairing struct {
	Person   string
	Via      string // the channel
	Address  string // as the channel knows the account for good: at Telegram, the numeric id
	PairedAt time.Time
}

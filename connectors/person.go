package connectors

import "time"

// Person is somebody who may decide, with the addresses by which channels know them.
type Person struct {
	Name     string
	User     string // OS account
	UID      int    // of User; permissions.NoUID without one
	Telegram int64
	WhatsApp string // E.164
	// WhatsAppLID is what WhatsApp called the account of that number besides when it was enrolled; empty where it was not.
	WhatsAppLID string
	// Suspended are the channels at which their account may be somebody else's by now: they have no address there.
	Suspended []string
	// Unconfirmed are those of Suspended that they were paired with before the store was restored, which the operator has to
	// confirm.
	Unconfirmed []string
	Location    *time.Location
	Quiet       Hours // when they are not to be disturbed, in Location
	// PhoneAfter is how long what an agent's hook asks is kept from their phone: who sits at that agent answers there.
	PhoneAfter time.Duration
	Via        []string // the channels to try, in this order, the next when one fails; empty: the daemon's order
}

// Hours are a span of every day, from one minute of the day up to another; it may go past midnight. The zero Hours are
// none.
type Hours struct{ From, To int }

// Hold tells whether t, in its own location, lies within.
func (h Hours) Hold(t time.Time) bool {
	now := t.Hour()*60 + t.Minute()
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// Contact is how one channel stands just now, and whom it reaches.
type Contact struct {
	Channel string
	Screen  bool  // see [Screen]
	Health  error // what is wrong with the channel as a whole, as far as it knows; nil: nothing
	// People are all who may be asked, by name: nil for somebody whom the channel can reach just now, else why it cannot.
	People map[string]error
	// Suspended are the people whose account at this channel decides nothing, each with why, and what to do about it.
	Suspended map[string]error
}

// Reaches reports whether the channel is well and can reach that person just now.
func (c Contact) Reaches(name string) bool {
	why, known := c.People[name]
	return known && why == nil && c.Health == nil
}

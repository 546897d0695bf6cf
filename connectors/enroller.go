package connectors

import (
	"context"
	"errors"
	"time"
)

// Enroller is a channel to which people bring their own accounts, by a link that works once. What it shows of an account
// is what the channel itself proves, and whether that is the person who was meant is for somebody to say who knows them.
type Enroller interface {
	// Invite makes a link. Its code is kept in memory only.
	Invite(ctx context.Context) (Invitation, error)
	// Guest waits until somebody has come by the link with that code, and says who; the link works no more then. The
	// error matches [ErrNoInvitation] when nobody can come by it any more.
	Guest(ctx context.Context, code string) (Guest, error)
	// Dismiss ends an invitation. Whoever came by it is told that they were not added.
	Dismiss(code string)
	// Greet ends an invitation, if code is one, and tells an account that it answers as that person from now on.
	Greet(code, address, name string)
	// Release tells an account that it no longer answers as that person.
	Release(address, name string)
	// Address is what this channel knows a person by, as the configuration has it; empty where it has none.
	Address(p Person) string
	// At is p with that address.
	At(p Person, address string) Person
}

// Invitation is a link that enrols one account.
type Invitation struct {
	Code string
	Link string
	// How is what the invited person does, to follow their name and to be followed by the link: "presses Start behind this
	// link".
	How   string
	Until time.Time // the link works before
}

// Guest is an account that came by a link.
type Guest struct {
	Address  string // as a [permissions.Pairing] has it
	Alias    string // as well
	Name     string // as the account calls itself: anybody may call themselves anything
	Language string // an IETF tag, if the channel tells
}

// ErrNoInvitation is matched by errors of [Enroller.Guest] about a link that is used, over, or was never there.
var ErrNoInvitation = errors.New("the link is used, its time is over, or it was never there")

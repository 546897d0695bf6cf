package admin

import (
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// decision is what a decider posts.
type decision struct {
	Answer    permissions.Answer `json:"answer,omitzero" maxLength:"64" doc:"the id of an option, or other: the comment answers a question"`
	Call      int                `json:"call,omitzero" minimum:"0" doc:"of a step; 0 for all that are open"`
	Comment   string             `json:"comment,omitzero" maxLength:"2000" doc:"the reason, or with other the answer"`
	Digest    string             `json:"digest,omitzero" doc:"of what was shown"`
	Really    bool               `json:"really,omitzero" doc:"the second yes of high risk"`
	Defaulted bool               `json:"defaulted,omitzero" doc:"no valid answer in three tries; answer is not read"`
}

// of is the decision about the request that is named, by its id or by its code.
func (b decision) of(name string) (d connectors.Decision, err error) {
	if b.Answer != "" && b.Defaulted {
		return d, errors.New("a decision has an answer, or is defaulted, not both")
	}
	if b.Answer == "" && !b.Defaulted {
		return d, errors.New("a decision needs an answer, the id of one of the request's options")
	}
	d = connectors.Decision{
		Answer: b.Answer, Call: b.Call, Comment: b.Comment, Really: b.Really, Default: b.Defaulted,
	}
	if b.Digest != "" {
		if d.Shown, err = permissions.ParseDigest(b.Digest); err != nil {
			return d, err
		}
		if d.Shown == (permissions.Digest{}) {
			return d, errors.New("the digest is nobody's: leave it out, or send that of what was shown")
		}
	}
	if len(name) == permissions.CodeLength {
		d.Code = name
	} else {
		d.Request = permissions.ID(name)
	}
	return d, nil
}

// bodyOf is what posts d, and the name of its request.
func bodyOf(d connectors.Decision) (b decision, name string) {
	b = decision{Answer: d.Answer, Call: d.Call, Comment: d.Comment, Really: d.Really, Defaulted: d.Default}
	if d.Shown != (permissions.Digest{}) {
		b.Digest = d.Shown.String()
	}
	if d.Request != "" {
		return b, string(d.Request)
	}
	return b, d.Code
}

// Me is who a caller is here.
type Me struct {
	Name     string `json:"name"`
	UID      int    `json:"uid"`
	Operator bool   `json:"operator"`
	Via      string `json:"via"`
	// StoppedBy is who stopped everything; null while nothing is stopped.
	StoppedBy *string `json:"stopped_by"`
	// Timezone is the tz database's name of where they live; null where none is configured.
	Timezone *string `json:"timezone"`
}

// Location is the zone of the caller's times of day, and that of this process where none is configured or known.
func (m Me) Location() *time.Location {
	if m.Timezone == nil {
		return time.Local
	}
	zone, err := time.LoadLocation(*m.Timezone)
	if err != nil {
		return time.Local
	}
	return zone
}

// zoneName is the name of a zone that others know, too, or null.
func zoneName(zone *time.Location) *string {
	if zone == nil || zone == time.Local {
		return nil
	}
	return orNull(zone.String())
}

// Entry is one entry of the audit as programs read it.
type Entry struct {
	Chain   string            `json:"chain"`
	Seq     int64             `json:"seq"`
	At      time.Time         `json:"at"`
	Type    permissions.Type  `json:"type"`
	Request *permissions.ID   `json:"request"`
	Actor   *string           `json:"actor"`
	Via     *string           `json:"via"`
	Detail  map[string]string `json:"detail"`
	Prev    string            `json:"prev"`
	Hash    string            `json:"hash"`
}

// FromEntry is an entry as programs read it.
func FromEntry(e permissions.Entry) Entry {
	detail := e.Detail
	if detail == nil {
		detail = map[string]string{}
	}
	return Entry{
		Chain: e.Chain, Seq: e.Seq, At: e.At.UTC(), Type: e.Type, Request: orNull(e.Request),
		Actor: orNull(e.Actor), Via: orNull(e.Via), Detail: detail, Prev: e.Prev.String(), Hash: e.Hash.String(),
	}
}

// Head is the last entry of a chain that was verified, and what is kept of it, as programs read it.
type Head struct {
	Entry
	First   int64 `json:"first" doc:"the seq of the first entry that is kept"`
	Entries int   `json:"entries" doc:"how many are kept; there are gaps where the store was restored"`
}

func fromEntries(list []permissions.Entry) []Entry {
	made := make([]Entry, len(list))
	for i, e := range list {
		made[i] = FromEntry(e)
	}
	return made
}

// Permissions is the entry that e tells of.
func (e Entry) Permissions() (permissions.Entry, error) {
	prev, err := permissions.ParseDigest(e.Prev)
	if err != nil {
		return permissions.Entry{}, err
	}
	hash, err := permissions.ParseDigest(e.Hash)
	if err != nil {
		return permissions.Entry{}, err
	}
	r := permissions.Record{Type: e.Type, At: e.At, Detail: e.Detail}
	if e.Request != nil {
		r.Request = *e.Request
	}
	if e.Actor != nil {
		r.Actor = *e.Actor
	}
	if e.Via != nil {
		r.Via = *e.Via
	}
	return permissions.Entry{Chain: e.Chain, Seq: e.Seq, Prev: prev, Hash: hash, Record: r}, nil
}

func orNull[T ~string](v T) *T {
	if v == "" {
		return nil
	}
	return &v
}

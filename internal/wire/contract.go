package wire

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/permissions"
)

//go:embed events.json
var eventsText []byte

// Contract is what front ends can rely on, as documented in docs/events.md.
type Contract struct {
	Order  string // of the events
	Events map[permissions.Type]struct {
		About   string
		Payload map[string]*huma.Schema // by member name
	}
	Views map[string][]string // columns of the store's views, by view
}

// Events is the contract of this version.
var Events = func() (c Contract) {
	if err := json.Unmarshal(eventsText, &c); err != nil {
		panic(fmt.Sprintf("events.json is not right: %v", err))
	}
	return c
}()

// Schema describes any event.
func (c Contract) Schema() *huma.Schema {
	text := func(format string, nullable bool) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: format, Nullable: nullable}
	}
	all := &huma.Schema{Description: c.Order}
	for _, name := range slices.Sorted(maps.Keys(c.Events)) {
		all.OneOf = append(all.OneOf, &huma.Schema{
			Type: huma.TypeObject, Title: string(name), Description: c.Events[name].About,
			Properties: map[string]*huma.Schema{
				"seq": {Type: huma.TypeInteger}, "type": {Type: huma.TypeString, Enum: []any{name}}, "at": text("date-time", false),
				"session": text("", true), "request": text("", true),
				"payload": {Type: huma.TypeObject, Properties: c.Events[name].Payload},
			},
			Required: []string{"seq", "type", "at", "session", "request", "payload"},
		})
	}
	return all
}

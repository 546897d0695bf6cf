package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire"
)

func (c *CLI) eventsCommand() *cobra.Command {
	after := admin.FromNow
	cmd := &cobra.Command{
		Use: "events",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("after") && after < 0 {
				return usage("--after is the seq of an event seen before, or 0 for all of them, not %d", after)
			}
			since, err := c.listing.begin(time.Local)
			if err != nil {
				return err
			}
			if c.listing.since != "" && !cmd.Flags().Changed("after") {
				after = 0
			}
			client, err := c.adminClient()
			if err != nil {
				return err
			}
			defer client.Close()
			client.Lost = func(error) { c.say("the daemon is away; what happens is told when it is back") }
			client.Back = func() { c.say("the daemon is back") }
			told := 0
			err = client.Events(cmd.Context(), after, func(e wire.Event) (err error) {
				if e.At.Before(since) {
					return nil
				}
				if c.asJSON {
					err = c.json(e)
				} else {
					_, err = fmt.Fprintln(c.Out, eventLine(e, time.Local))
				}
				if told++; err == nil && told == c.listing.limit {
					err = errEnough
				}
				return err
			})
			if errors.Is(err, context.Canceled) || errors.Is(err, errEnough) {
				return nil // Ctrl-C is the normal end
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&after, "after", after, "seq of the last event seen, 0 for all of them (default: from now on)")
	cmd.Flags().Lookup("after").DefValue = "0" // hides the default in the help
	return cmd
}

var errEnough = errors.New("event limit reached")

// eventLine formats an event: time, type, request, actor, and the rest of its payload.
func eventLine(e wire.Event, zone *time.Location) string {
	words := []string{fmt.Sprint(e.Seq), stamp(e.At, zone), spelled(string(e.Type))}
	if e.Request != nil {
		words = append(words, spelled(string(*e.Request)))
	}
	if actor, known := e.Payload["actor"]; known {
		words = append(words, "by "+spelled(said(actor)))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Payload)) {
		if name != "actor" && name != "digest" && e.Payload[name] != nil {
			words = append(words, spelled(name+"="+said(e.Payload[name])))
		}
	}
	return strings.Join(words, "  ")
}

// said formats a payload member: strings as they are, anything else as JSON.
func said(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := wire.Encode(value)
	if err != nil { // it was decoded from JSON
		return fmt.Sprint(value)
	}
	return string(text)
}

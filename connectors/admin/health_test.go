package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
)

// channel is one that knows how it is, and sends nothing.
type channel struct {
	name string
	ill  error
}

func (c channel) Name() string  { return c.name }
func (c channel) Health() error { return c.ill }

func (channel) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (channel) Send(context.Context, connectors.Prompt) (string, error) {
	return "", connectors.ErrUnreachable
}

func (channel) Reach(connectors.Person) error { return connectors.ErrUnreachable }

func TestHowTheChannelsAre(t *testing.T) {
	why := "the token is refused; put the right one into its file"
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t, channel{"letters", errors.New(why)}, channel{"whatsapp", nil})
	serve(t, socket, env)
	c := newClient(t, socket, "")
	want := []admin.Channel{{Name: "letters", Text: why}, {Name: "whatsapp", OK: true}} // telegram does not know
	if all, err := c.Health(t.Context()); err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestByWhichChannelsPeopleAreReached(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	if all, err := newClient(t, socket, "").People(t.Context()); err == nil {
		t.Errorf("somebody who is not the operator sees %v", all)
	}
	all, err := newClient(t, socket, key).People(t.Context())
	if err != nil || len(all) != 3 || all[0].Name != "fay" || !slices.Equal(all[0].Via, []string{"telegram"}) {
		t.Errorf("%v, %v", all, err)
	}
}

package admin_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/wire/wiretest"
)

func TestHowTheChannelsAre(t *testing.T) {
	socket, desk := wiretest.Socket(t), wiretest.NewDesk()
	serve(t, socket, desk)
	c := newClient(t, socket, "")
	if all, err := c.Health(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("without any that knows: %v, %v", all, err)
	}
	desk.Channels = map[string]error{"whatsapp": nil, "telegram": errors.New("the token is refused; put the right one into its file")}
	want := []admin.Channel{{Name: "telegram", Text: "the token is refused; put the right one into its file"}, {Name: "whatsapp", OK: true}}
	if all, err := c.Health(t.Context()); err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestByWhichChannelsPeopleAreReached(t *testing.T) {
	socket, desk := wiretest.Socket(t), wiretest.NewDesk()
	serve(t, socket, desk)
	if all, err := newClient(t, socket, "").People(t.Context()); err == nil {
		t.Errorf("somebody who is not the operator sees %v", all)
	}
	all, err := newClient(t, socket, key).People(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "fay" || !slices.Equal(all[0].Via, []string{"telephone"}) || len(all[1].Via) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
